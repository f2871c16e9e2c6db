import { describeAuthority } from "./authority-suite.ts";

describeAuthority("the store in memory", "memory");
