#include "addon/channel_values.h"

#include "addon/values.h"

namespace millrace {
namespace {

napi_value FaultValue(napi_env env, const protocol::FaultSlot& fault) {
  const double block[] = {static_cast<double>(fault.block_x), static_cast<double>(fault.block_y),
                          static_cast<double>(fault.block_z)};
  const double thread[] = {static_cast<double>(fault.thread_x), static_cast<double>(fault.thread_y),
                           static_cast<double>(fault.thread_z)};
  const double places[] = {static_cast<double>(static_cast<uint32_t>(fault.places)),
                           static_cast<double>(fault.places >> 32)};
  return ObjectValue(env)
      .Set("parameter", fault.parameter)
      .Set("dimension", fault.dimension)
      .Set("index", static_cast<double>(fault.index))
      .Set("limit", fault.limit)
      .Set("block", NumbersValue(env, block))
      .Set("thread", NumbersValue(env, thread))
      .Set("places", NumbersValue(env, places))
      .value();
}

}  // namespace

napi_value FailuresValue(napi_env env, const FailureLog::Part& part) {
  const napi_value records = ArrayValue(env, part.intervals, [&](const Failure& failure) {
    ObjectValue value(env);
    value.Set("id", static_cast<double>(failure.id))
        .Set("first", static_cast<double>(failure.first))
        .Set("last", static_cast<double>(failure.last))
        .Set("status", static_cast<double>(failure.status.code()))
        .Set("driverStatus", failure.status.driver_code())
        .Set("note", failure.status.note())
        .Set("cause", static_cast<double>(failure.cause))
        .Set("lostDevice", failure.lost_device)
        .Set("requestedBytes", static_cast<double>(failure.requested_bytes))
        .Set("freeBytes", static_cast<double>(failure.free_bytes))
        .Set("requested", static_cast<double>(failure.requested))
        .Set("limit", static_cast<double>(failure.limit))
        .Set("kernel", failure.kernel);
    if (failure.node != hal::kNoNode) value.Set("node", failure.node);
    if (failure.has_fault) value.Set("fault", FaultValue(env, failure.fault));
    return value.value();
  });
  return ObjectValue(env).Set("records", records).Set("rest", static_cast<double>(part.rest)).value();
}

napi_value StatsValue(napi_env env, const ChannelStats& stats) {
  return ObjectValue(env)
      .Set("pendingRecords", static_cast<double>(stats.pending_records))
      .Set("ringBytes", static_cast<double>(stats.ring_bytes))
      .Set("liveMemory", static_cast<double>(stats.live_memory))
      .Set("liveBytes", static_cast<double>(stats.live_bytes))
      .Set("stagingBytes", static_cast<double>(stats.staging_bytes))
      .Set("pinnedBytes", static_cast<double>(stats.pinned_bytes))
      .Set("streams", stats.streams)
      .Set("parked", ArrayValue(env, stats.parked,
                                [&](const ParkedStream& parked) {
                                  return ObjectValue(env)
                                      .Set("stream", parked.stream)
                                      .Set("reason", ParkReasonName(parked.reason))
                                      .Set("deferred", static_cast<double>(parked.deferred))
                                      .value();
                                }))
      .value();
}

napi_value LossValue(napi_env env, StatusCode status, int32_t driver_code) {
  if (status == StatusCode::kOk) return Undefined(env);
  return ObjectValue(env).Set("status", static_cast<double>(status)).Set("driverStatus", driver_code).value();
}

napi_value StreamsValue(napi_env env, const std::vector<uint32_t>& streams) {
  return ArrayValue(env, streams, [&](uint32_t stream) { return NumberValue(env, stream); });
}

napi_value PointsValue(napi_env env, const std::vector<SubmissionQueue::Point>& points) {
  std::vector<double> numbers;
  for (const auto& point : points) {
    numbers.push_back(point.stream);
    numbers.push_back(static_cast<double>(point.ticket));
  }
  return ArrayValue(env, numbers, [&](double number) { return NumberValue(env, number); });
}

}  // namespace millrace
