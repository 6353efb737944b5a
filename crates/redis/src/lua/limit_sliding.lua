-- Uses are kept by 16ths of the time, and forgotten when all of their 16th is out of it.
local part = math.max(per / 16, 1)
local known = redis.call('HGETALL', K)
local current = math.floor(now / part)
-- A clock that went back (another Redis took over) forgets nothing.
for index = 1, #known, 2 do
  current = math.max(current, tonumber(known[index]))
end
now = math.max(now, current * part)
local used, oldest = 0, current
for index = 1, #known, 2 do
  local slot = tonumber(known[index])
  if slot < current - 16 then
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
