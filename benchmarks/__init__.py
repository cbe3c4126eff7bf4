"""Side by side with the peers, in one run. ``make bench`` prints a table and writes JSON."""
