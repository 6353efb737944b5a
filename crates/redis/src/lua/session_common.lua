-- What a session has left of its whole life, in milliseconds; nil where that has no end.
local function left_ms(S)
  local till = redis.call('HGET', S, 'u')
  return till and math.max(tonumber(till) - math.floor(now_us() / 1000), 1) or nil
end

-- The idle time begins anew, within the whole life; for what waits on its standalone stream, too.
local function keep_session(name, idle_ms)
  local S = P .. 's:' .. name
  local standalone = P .. 'l:' .. name .. '.0'
  local left = left_ms(S)
  local ttl = whole(left and math.min(left, idle_ms) or idle_ms)
  for _, key in ipairs({S, S .. ':c', standalone, standalone .. ':m'}) do
    redis.call('PEXPIRE', key, ttl)
  end
end

-- Those that have ended, by the time until which a process might still believe in them. Together, and so many at most: whoever
-- begins and ends sessions in a loop leaves no key for each.
local ENDED = P .. 'ended'
local ENDED_MOST = 100000

local function has_ended(name)
  local till = redis.call('ZSCORE', ENDED, name)
  return till and tonumber(till) > now_us() / 1000
end

local function remember_ended(name, idle_ms)
  local now = now_us() / 1000
  redis.call('ZADD', ENDED, whole(now + idle_ms), name)
  redis.call('ZREMRANGEBYSCORE', ENDED, '-inf', whole(now))
  redis.call('ZREMRANGEBYRANK', ENDED, 0, -(ENDED_MOST + 1))
  if redis.call('PTTL', ENDED) < idle_ms then
    redis.call('PEXPIRE', ENDED, whole(idle_ms))
  end
end
