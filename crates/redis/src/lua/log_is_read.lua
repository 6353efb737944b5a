-- ARGV: prefix, log.
return reader_of(P .. 'l:' .. ARGV[2] .. ':m') and 1 or 0
