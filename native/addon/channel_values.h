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
/// Pairs of a stream and a ticket, one after another.
napi_value PointsValue(napi_env env, const std::vector<SubmissionQueue::Point>& points);

}  // namespace millrace
