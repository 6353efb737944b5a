-- ARGV: prefix, idle_ms, names...
for index = 3, #ARGV do
  if redis.call('HEXISTS', P .. 's:' .. ARGV[index], 'r') == 1 then
    keep_session(ARGV[index], tonumber(ARGV[2]))
  end
end
return 1
