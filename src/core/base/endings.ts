// Counts what ended in this thread: arrays that were disposed, streams that were closed. A call reads its arguments before it submits a
// record, and a getter among them may end what the call has checked already. If the count has changed meanwhile, the call checks again.

export const endings = { count: 0 };
