-- What a session has left of its whole life, in milliseconds; nil where that has no end.
local function left_ms(S)
  local till = redis.call('HGET', S, 'u')
  return till and math.max(tonumber(till) - math.floor(now_us() / 1000), 1) or nil
end

-- The idle time begins anew, within the whole life.
local function keep_session(name, idle_ms)
  local S = P .. 's:' .. name
  local left = left_ms(S)
  local ttl = whole(left and math.min(left, idle_ms) or idle_ms)
  redis.call('PEXPIRE', S, ttl)
  redis.call('PEXPIRE', S .. ':c', ttl)
end
