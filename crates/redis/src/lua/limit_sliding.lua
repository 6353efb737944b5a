-- ARGV: prefix, name, calls, per_us. Uses are kept by 16ths of the time, and forgotten when all of their 16th is out of it.
local K = P .. 'r:' .. ARGV[2]
local per = tonumber(ARGV[4])
local part = math.max(per / 16, 1)
local now = now_us()
local current = math.floor(now / part)
local used, oldest = 0, current
local known = redis.call('HGETALL', K)
for index = 1, #known, 2 do
  local slot = tonumber(known[index])
  if slot < current - 16 or slot > current then
    redis.call('HDEL', K, known[index])
  else
    used = used + tonumber(known[index + 1])
    oldest = math.min(oldest, slot)
  end
end
if used >= tonumber(ARGV[3]) then
  return whole(math.max((oldest + 17) * part - now, 1))
end
redis.call('HINCRBY', K, whole(current), 1)
redis.call('PEXPIRE', K, whole(math.ceil(per * 17 / 16 / 1000)))
return '0'
