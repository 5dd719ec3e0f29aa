// What `postMessage` says of objects that belong to their thread.
//
// The structured clone algorithm copies the own properties of an object in the order in which they were made, and stops at a symbol with a
// DataCloneError whose message is the text of the symbol. So these objects have such a symbol as their first property. Without it, the
// message would show the source of whichever inner function comes first. Node has no public way to set the message: `markAsUncloneable`
// (Node 22.10) gives "Cannot clone object of unsupported type".

/** `what`: the object, with its article. `instead`: what can be posted. */
function stay(what: string, instead: string): symbol {
  return Symbol(`${what} belongs to its thread: ${instead}`);
}

export const DEVICE_STAYS: symbol = stay('A Device', 'post device.share(), and call openShared(token) in the other thread; the Device');
export const STREAM_STAYS: symbol = stay('A Stream', 'post device.share(), and create a stream in the other thread; the Stream');
export const ARRAY_STAYS: symbol = stay(
  'A DeviceArray',
  'post array.share(), and call device.adopt(token) in the other thread; the DeviceArray',
);
export const TEXTURE_STAYS: symbol = stay('A Texture', 'create one in the other thread; the Texture');
export const PINNED_STAYS: symbol = stay('A PinnedArray', 'post pinned.data, which is shared memory; the PinnedArray');
export const EVENT_STAYS: symbol = stay(
  'A DeviceEvent',
  'await event.done, or post array.share(), which waits on the device; the DeviceEvent',
);
export const KERNEL_STAYS: symbol = stay('A kernel', 'import the module that defines it in the other thread; the kernel');
export const GRAPH_STAYS: symbol = stay('A Graph', 'post device.share(), and capture the graph in the other thread; the Graph');
export const SLOT_STAYS: symbol = stay(
  'A slot of a capture',
  'pass it to kernels in the capture, and capture in the other thread; the slot',
);
