-- ARGV: prefix, process, id. Its reader has all up to this id, and nobody else reads that box.
local box = P .. 'box:' .. ARGV[2]
for _, entry in ipairs(redis.call('XRANGE', box, '-', ARGV[3])) do
  take_out(box, entry)
end
keep_box(box)
return 1
