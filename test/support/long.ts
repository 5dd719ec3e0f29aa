/** MILLRACE_LONG=1, which `npm run soak` sets: tests that have a shorter form for every day run in full. */
export const IS_LONG: boolean = process.env['MILLRACE_LONG'] === '1';
