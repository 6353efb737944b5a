-- ARGV: prefix, log, own, sequence, kind, position or '', message, most events, most bytes, idle_ms, after_end_ms,
-- most ended, most ended bytes. {read by somebody, dropped unread}.
--
-- Of a stream's meta: p last position, d last one delivered, b bytes, r reader, o whether it is open, k whether its reader was
-- woken, w writer, a what it answers, x whether it has ended, q… the last sequence of each process.
local L, own, sequence, kind = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local S = P .. 'l:' .. L
local M = S .. ':m'
local reader = reader_of(M)
local read = reader and 1 or 0

local function result(dropped)
  return {read, dropped}
end

if redis.call('HEXISTS', M, 'x') == 1 then
  return result(0)
end
if sequence > 0 then
  -- Sent again by who doesn't know that it had arrived.
  if sequence <= tonumber(redis.call('HGET', M, 'q' .. own) or '0') then
    return result(0)
  end
  redis.call('HSET', M, 'q' .. own, ARGV[4])
end

local dropped = 0
local ttl = ARGV[10]
if kind == 'begin' then
  redis.call('HSET', M, 'w', own, 'a', ARGV[7])
elseif kind == 'event' then
  local last = redis.call('HGET', M, 'p')
  local position
  if ARGV[6] == '' then
    -- By the clock, so that a Redis which lost its memory gives no position twice.
    position = math.max(tonumber(last or '0') + 1, now_us())
  else
    position = tonumber(ARGV[6])
    if last and position <= tonumber(last) then
      return result(0)
    end
  end
  redis.call('HSET', M, 'p', whole(position))
  redis.call('XADD', S, whole(position + 1) .. '-0', 'm', ARGV[7])
  local bytes = redis.call('HINCRBY', M, 'b', #ARGV[7])
  local events = redis.call('XLEN', S)
  local delivered = tonumber(redis.call('HGET', M, 'd') or '-1')
  while events > tonumber(ARGV[8]) or (bytes > tonumber(ARGV[9]) and events > 1) do
    local oldest = redis.call('XRANGE', S, '-', '+', 'COUNT', 1)[1]
    if tonumber(string.match(oldest[1], '^%d+')) - 1 > delivered then
      dropped = dropped + 1
    end
    redis.call('XDEL', S, oldest[1])
    bytes = redis.call('HINCRBY', M, 'b', -#oldest[2][2])
    events = events - 1
  end
else
  redis.call('HSET', M, 'x', 1)
  ttl = ARGV[11]
  local E = P .. 'e:' .. string.match(L, '^%x+')
  redis.call('RPUSH', E, L .. ' ' .. (redis.call('HGET', M, 'b') or '0'))
  redis.call('PEXPIRE', E, ttl)
  local kept = redis.call('LRANGE', E, 0, -1)
  local total = 0
  for _, entry in ipairs(kept) do
    total = total + tonumber(string.match(entry, ' (%d+)$'))
  end
  local first = 1
  -- The one that has just ended stays, however large: somebody may be reading it.
  while first < #kept and (#kept - first + 1 > tonumber(ARGV[12]) or total > tonumber(ARGV[13])) do
    local oldest, size = string.match(kept[first], '^(%S+) (%d+)$')
    redis.call('LPOP', E)
    redis.call('DEL', P .. 'l:' .. oldest, P .. 'l:' .. oldest .. ':m')
    total = total - tonumber(size)
    first = first + 1
  end
end
redis.call('PEXPIRE', S, ttl)
redis.call('PEXPIRE', M, ttl)
if reader and redis.call('HGET', M, 'k') ~= '1' then
  redis.call('HSET', M, 'k', 1)
  put(P .. 'box:' .. process_of(reader), own, '{"wake":"' .. L .. '"}')
end
return result(dropped)
