-- ARGV: prefix, name, idle_ms. It is remembered as ended for as long as a process might still believe in it.
local S = P .. 's:' .. ARGV[2]
redis.call('DEL', S, S .. ':c')
remember_ended(ARGV[2], tonumber(ARGV[3]))
local standalone = P .. 'l:' .. ARGV[2] .. '.0'
redis.call('DEL', standalone, standalone .. ':m')
local E = P .. 'e:' .. ARGV[2]
for _, kept in ipairs(redis.call('LRANGE', E, 0, -1)) do
  local log = P .. 'l:' .. string.match(kept, '^%S+')
  redis.call('DEL', log, log .. ':m')
end
redis.call('DEL', E)
return 1
