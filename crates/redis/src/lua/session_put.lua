-- ARGV: prefix, name, record, idle_ms, whole_ms or ''. 1: it is there; 0: it had ended.
local S = P .. 's:' .. ARGV[2]
if has_ended(ARGV[2]) then
  return 0
end
if redis.call('EXISTS', S) == 0 then
  redis.call('HSET', S, 'r', ARGV[3])
  if ARGV[5] ~= '' then
    redis.call('HSET', S, 'u', whole(now_us() / 1000 + tonumber(ARGV[5])))
  end
end
keep_session(ARGV[2], tonumber(ARGV[4]))
return 1
