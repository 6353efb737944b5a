-- The window begins with its first use. 0: counted; else microseconds until there is room.
local fields = redis.call('HMGET', K, 's', 'n')
local begun, used = tonumber(fields[1] or '-1'), tonumber(fields[2] or '0')
-- A clock that went back (another Redis took over) forgets nothing.
now = math.max(now, begun)
if begun < 0 or now - begun >= per then
  begun, used = now, 0
end
if used >= tonumber(ARGV[3]) then
  return whole(begun + per - now)
end
redis.call('HSET', K, 's', whole(begun), 'n', used + 1)
redis.call('PEXPIRE', K, whole(math.ceil(per / 1000)))
return '0'
