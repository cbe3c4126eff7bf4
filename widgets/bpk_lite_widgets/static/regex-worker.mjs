/** The worker of `regex-work.mjs` as a file, for pages whose policy allows no Blob. */

import { work } from "./regex-work.mjs";

work(self);
