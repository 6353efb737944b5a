-- ARGV: prefix, name. {0}: unknown; {2}: ended; {1, record, left_ms or -1, changes...}.
local S = P .. 's:' .. ARGV[2]
local fields = redis.call('HMGET', S, 'r', 'e')
if fields[2] then
  return {2}
end
if not fields[1] then
  return {0}
end
local found = {1, fields[1], left_ms(S) or -1}
for _, change in ipairs(redis.call('HVALS', S .. ':c')) do
  found[#found + 1] = change
end
return found
