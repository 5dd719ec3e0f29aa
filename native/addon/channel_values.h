// What an owner's calls return of a channel, as JavaScript values.
#pragma once

#include <node_api.h>

#include <vector>

#include "runtime/channel_stats.h"
#include "runtime/failures.h"
#include "runtime/submission_queue.h"

namespace millrace {

napi_value FailuresValue(napi_env env, const FailureLog::Part& part);
napi_value StatsValue(napi_env env, const ChannelStats& stats);
/// `{ status, driverStatus }`, or undefined for a device that is not lost.
napi_value LossValue(napi_env env, StatusCode status, int32_t driver_code);
napi_value StreamsValue(napi_env env, const std::vector<uint32_t>& streams);
/// Pairs of a stream and a ticket, one after another.
napi_value PointsValue(napi_env env, const std::vector<SubmissionQueue::Point>& points);

}  // namespace millrace
