-- ARGV: prefix, log, reader.
local M = P .. 'l:' .. ARGV[2] .. ':m'
if redis.call('HGET', M, 'r') == ARGV[3] then
  redis.call('HSET', M, 'o', 0)
end
return 1
