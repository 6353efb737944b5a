-- ARGV: prefix, log, own, reader, after or '', idle_ms, whether it is made where it isn't, whether it yields to who reads it.
-- {0, after}; {1}: taken; {2}: unknown.
local L, reader, from = ARGV[2], ARGV[4], ARGV[5]
local S = P .. 'l:' .. L
local M = S .. ':m'
if ARGV[7] ~= '1' and redis.call('EXISTS', M) == 0 then
  return {2}
end
if ARGV[8] == '1' then
  local other = reader_of(M)
  if other and other ~= reader then
    return {1}
  end
end
local before = redis.call('HGET', M, 'r')
if before and before ~= reader and lives(process_of(before)) then
  put(P .. 'box:' .. process_of(before), ARGV[3], '{"let-go":["' .. L .. '","' .. before .. '"]}')
end
redis.call('HSET', M, 'r', reader, 'o', 1)
redis.call('HDEL', M, 'k')
if redis.call('HEXISTS', M, 'x') == 0 then
  redis.call('PEXPIRE', M, ARGV[6])
  redis.call('PEXPIRE', S, ARGV[6])
end
if from ~= '' then
  return {0, from}
end
return {0, redis.call('HGET', M, 'd') or '0'}
