-- Prints what http-load.ts needs as the last line; times in milliseconds. With an argument, each connection rests between an answer
-- and its next request, for so many milliseconds on average, by chance, so that connections do not keep step.
function init(args)
  local restMs = tonumber(args[1])
  if restMs then
    function delay()
      return math.random(0, 2 * restMs)
    end
  end
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"requests":%d,"durationMs":%f,"errors":%d,"p50":%f,"p95":%f,"p99":%f}',
    summary.requests,
    summary.duration / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50) / 1000,
    latency:percentile(95) / 1000,
    latency:percentile(99) / 1000
  ))
end
