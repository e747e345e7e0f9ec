-- The server's clock in microseconds. What a script writes is replicated, not
-- the script, so it may read the clock.
local function clock()
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1000000 + tonumber(now[2])
end
