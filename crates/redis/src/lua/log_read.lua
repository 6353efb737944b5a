-- ARGV: prefix, log, the id after which to read, how many. {writer, ended, more, asked, position, message, …}; writer: 0 anybody,
-- 1 lives, 2 is gone, 3 nobody knows.
local S = P .. 'l:' .. ARGV[2]
local M = S .. ':m'
local fields = redis.call('HMGET', M, 'w', 'x', 'a')
-- Looked at before the writer's life: what it said last is there by then.
local writer = 0
if redis.call('EXISTS', M) == 0 then
  return {3, 0, 0, ''}
elseif fields[1] then
  writer = lives(fields[1]) and 1 or 2
end
redis.call('HDEL', M, 'k')
local most = tonumber(ARGV[4])
local events = redis.call('XRANGE', S, '(' .. ARGV[3], '+', 'COUNT', most + 1)
local page = {writer, fields[2] and 1 or 0, #events > most and 1 or 0, fields[3] or ''}
for index = 1, math.min(#events, most) do
  page[#page + 1] = events[index][1]
  page[#page + 1] = events[index][2][2]
end
if #events > 0 then
  local last = tonumber(string.match(events[math.min(#events, most)][1], '^%d+')) - 1
  if last > tonumber(redis.call('HGET', M, 'd') or '-1') then
    redis.call('HSET', M, 'd', whole(last))
  end
end
if not fields[2] then
  local ttl = redis.call('PTTL', M)
  if ttl > 0 then
    redis.call('PEXPIRE', S, ttl)
  end
end
return page
