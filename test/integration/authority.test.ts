/**
 * Goal: authorities over a real nats-server keep the same promises as over the store in memory.
 * Method: the suite of the authority, a server for each group of tests.
 */
import { describeAuthority } from "../unit/authority/authority-suite.ts";

describeAuthority("JetStream", "jetstream");
