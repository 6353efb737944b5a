-- ARGV: prefix, name. {0}: unknown; {2}: ended; {1, record, left_ms or -1, changes...}.
local S = P .. 's:' .. ARGV[2]
local record = redis.call('HGET', S, 'r')
if not record then
  return {has_ended(ARGV[2]) and 2 or 0}
end
local found = {1, record, left_ms(S) or -1}
for _, change in ipairs(redis.call('HVALS', S .. ':c')) do
  found[#found + 1] = change
end
return found
