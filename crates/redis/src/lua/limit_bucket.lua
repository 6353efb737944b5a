-- A full bucket is no key at all.
local burst = tonumber(ARGV[5])
local each = per / tonumber(ARGV[3])
local fields = redis.call('HMGET', K, 't', 's')
local tokens = burst
if fields[1] then
  -- A clock that went back (another Redis took over) gives nothing.
  now = math.max(now, tonumber(fields[2]))
  tokens = math.min(burst, tonumber(fields[1]) + (now - tonumber(fields[2])) / each)
end
if tokens < 1 then
  return whole(math.max(math.ceil((1 - tokens) * each), 1))
end
tokens = tokens - 1
redis.call('HSET', K, 't', string.format('%.17g', tokens), 's', whole(now))
redis.call('PEXPIRE', K, whole(math.ceil((burst - tokens) * each / 1000) + 1))
return '0'
