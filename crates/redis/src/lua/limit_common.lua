-- Begins each limit's script. ARGV: prefix, name, calls, per_us, burst or '', rule, most keys.
local per = tonumber(ARGV[4])
local now = now_us()

-- Where a use is counted. Of one rule there are so many counts at a time and no more: the rest share a few, or whoever can make
-- keys up (sessions, headers) would fill Redis with them. Short ones are gone before that.
local LONG_US = 10000000

local function count_key()
  local own = P .. 'r:' .. ARGV[2]
  if per <= LONG_US or redis.call('EXISTS', own) == 1 then
    return own
  end
  local seen = P .. 'k:' .. ARGV[6] .. ':' .. whole(math.floor(now / per))
  redis.call('PFADD', seen, ARGV[2])
  redis.call('PEXPIRE', seen, whole(math.ceil(per / 1000)))
  if redis.call('PFCOUNT', seen) <= tonumber(ARGV[7]) then
    return own
  end
  return P .. 'r:' .. ARGV[6] .. '.' .. string.sub(ARGV[2], -2)
end

local K = count_key()
