-- Begins every script. P: the prefix of all keys. Numbers go to Redis as whole decimals: Lua's own form has an exponent.

local P = ARGV[1]

local function whole(number)
  return string.format('%.0f', number)
end

local function now_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function lives(process)
  return redis.call('EXISTS', P .. 'up:' .. process) == 1
end

-- Of a box: messages, their bytes, and how long it is kept after the last. No message is longer than a quarter of it.
local BOX_MOST = 4096
local BOX_BYTES = 16777216
local BOX_TTL_MS = 3600000

-- Takes an entry out; the bytes that are left.
local function take_out(box, entry)
  redis.call('XDEL', box, entry[1])
  return redis.call('INCRBY', box .. ':b', -#entry[2][6])
end

local function keep_box(box)
  for _, key in ipairs({box, box .. ':n', box .. ':b'}) do
    redis.call('PEXPIRE', key, BOX_TTL_MS)
  end
end

-- Puts a message into a box; the oldest go when it is full, and the numbers tell its reader how many.
local function put(box, from, body)
  local number = redis.call('INCR', box .. ':n')
  redis.call('XADD', box, '*', 'n', number, 'f', from, 'p', body)
  local bytes = redis.call('INCRBY', box .. ':b', #body)
  local count = redis.call('XLEN', box)
  while count > 1 and (count > BOX_MOST or bytes > BOX_BYTES) do
    bytes = take_out(box, redis.call('XRANGE', box, '-', '+', 'COUNT', 1)[1])
    count = count - 1
  end
  keep_box(box)
end

local function process_of(reader)
  return string.match(reader, '^%d+')
end

-- Whether a process that lives reads the stream of this meta.
local function reader_of(meta)
  local fields = redis.call('HMGET', meta, 'r', 'o')
  if fields[1] and fields[2] == '1' and lives(process_of(fields[1])) then
    return fields[1]
  end
  return nil
end
