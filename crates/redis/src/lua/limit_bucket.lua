-- ARGV: prefix, name, calls, per_us, burst. A full bucket is no key at all.
local K = P .. 'r:' .. ARGV[2]
local burst = tonumber(ARGV[5])
local each = tonumber(ARGV[4]) / tonumber(ARGV[3])
local now = now_us()
local fields = redis.call('HMGET', K, 't', 's')
local tokens = burst
if fields[1] then
  tokens = math.min(burst, tonumber(fields[1]) + math.max(now - tonumber(fields[2]), 0) / each)
end
if tokens < 1 then
  return whole(math.max(math.ceil((1 - tokens) * each), 1))
end
tokens = tokens - 1
redis.call('HSET', K, 't', string.format('%.17g', tokens), 's', whole(now))
redis.call('PEXPIRE', K, whole(math.ceil((burst - tokens) * each / 1000) + 1))
return '0'
