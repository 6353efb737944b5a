-- ARGV: prefix, log, where to begin, how many, idle_ms, reader. {writer, ended, more, asked, position, message, …}; writer: 0
-- anybody, 1 lives, 2 is gone, 3 nobody knows, 4 somebody else reads it.
local L, idle_ms, reader = ARGV[2], ARGV[5], ARGV[6]
local S = P .. 'l:' .. L
local M = S .. ':m'
-- The standalone stream is there for as long as its session, whether or not anything was said on it.
local name, number = string.match(L, '^(%x+)%.(%x+)$')
if redis.call('EXISTS', M) == 0 and (number ~= '0' or redis.call('EXISTS', P .. 's:' .. name) == 0) then
  return {3, 0, 0, ''}
end
-- The writer's life is looked at after whether it ended: what it said last is there by then.
local fields = redis.call('HMGET', M, 'w', 'x', 'a', 'r')
if not fields[4] then
  -- Forgotten, and perhaps begun anew by who had something to say: it is read all the same.
  redis.call('HSET', M, 'r', reader, 'o', 1)
elseif fields[4] ~= reader then
  return {4, 0, 0, ''}
end
local writer = 0
if fields[1] then
  writer = lives(fields[1]) and 1 or 2
end
redis.call('HDEL', M, 'k')
local most = tonumber(ARGV[4])
local events = redis.call('XRANGE', S, ARGV[3], '+', 'COUNT', most + 1)
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
  -- One that is read isn't idle, however little is said.
  redis.call('PEXPIRE', S, idle_ms)
  redis.call('PEXPIRE', M, idle_ms)
end
return page
