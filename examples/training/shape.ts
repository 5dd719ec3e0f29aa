// The shape of the data, for threads that need no device.

/** Rows and columns of a digit. */
export const SIDE = 28;
export const PIXELS = SIDE * SIDE;
export const CLASSES = 10;
/** Digits of a file. */
export const SHEET = 500;
