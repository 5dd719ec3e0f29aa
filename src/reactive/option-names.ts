// The names of the options of pipelines and services.

const LANE_OPTIONS: readonly string[] = ['depth', 'streams', 'onError', 'stageTimeoutMs', 'maxQueue'];
/** The options of services: a request has an answer or an error and is never skipped, so there is no `onSkip`. */
export const SERVICE_OPTIONS: readonly string[] = [...LANE_OPTIONS, 'maxQueueMs'];
export const OVERLAP_OPTIONS: readonly string[] = [...LANE_OPTIONS, 'onSkip', 'ordered', 'signal', 'overflow'];
