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

-- Puts a message into a box; the oldest go when it is full, and the numbers tell its reader how many.
local function put(box, most, ttl_ms, from, body)
  local number = redis.call('INCR', box .. ':n')
  redis.call('PEXPIRE', box .. ':n', ttl_ms)
  redis.call('XADD', box, 'MAXLEN', most, '*', 'n', number, 'f', from, 'p', body)
  redis.call('PEXPIRE', box, ttl_ms)
end

local BOX_MOST = 4096
local BOX_TTL_MS = 3600000

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
