-- ARGV: prefix, name, then by twos: a field and its change, which is '' where the field goes.
local MOST = 4096
local S = P .. 's:' .. ARGV[2]
local C = S .. ':c'
for index = 3, #ARGV, 2 do
  if ARGV[index + 1] == '' then
    redis.call('HDEL', C, ARGV[index])
  elseif redis.call('HEXISTS', C, ARGV[index]) == 1 or redis.call('HLEN', C) < MOST then
    redis.call('HSET', C, ARGV[index], ARGV[index + 1])
  end
end
local ttl = redis.call('PTTL', S)
if ttl > 0 then
  redis.call('PEXPIRE', C, ttl)
else
  redis.call('DEL', C)
end
return 1
