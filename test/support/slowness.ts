/** How many times the tests' limits of time are as long: another Node runs in an emulator (docs/testing.md, "Arm64 without an Arm machine"). */
export const SLOWNESS: number = process.env['MILLRACE_TEST_NODE'] === undefined ? 1 : 20;
