-- ARGV: prefix, process or '' for all others, own, message. Whether anybody takes it.
if ARGV[2] == '' then
  put(P .. 'all', ARGV[3], ARGV[4])
  return 1
end
if not lives(ARGV[2]) then
  return 0
end
put(P .. 'box:' .. ARGV[2], ARGV[3], ARGV[4])
return 1
