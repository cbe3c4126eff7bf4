"""Burn's three records: what a module, an optimizer and a scheduler save (records.md).

A record is the content of one pack. No file says which kind it is (R1), so a record is a value that
holds whatever was in the file, and the module, optimizer or scheduler it is applied to says whether
it fits.
"""

from bpk_lite.records._record import LrSchedulerRecord, ModuleRecord, OptimizerRecord, Record

__all__ = ["LrSchedulerRecord", "ModuleRecord", "OptimizerRecord", "Record"]
