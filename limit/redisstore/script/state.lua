-- What every kind shares: the call, the key's state, whole-number arithmetic.
-- Go's package limit/internal/ledger is the same, function by function, and says
-- why; this text only says where Lua is different. Numbers are doubles: all are
-- whole and below 2^53, nothing is divided but by div, and none is written by
-- tostring, which has 14 digits.

local op, node, seq, want, stay, received, hold, returned, debt, ask, least, give_level, owned, floor, lease,
  seen, least_since, most_since, lost, steal, free, tiers = cmsgpack.unpack(ARGV[1])

local DRAW, CLAIM, GIVE, SLOT, FREE, RESET = 0, 1, 2, 3, 4, 5
local TOLERANCE, PURGE, LATELY, TIER_HOLD = 200000, 10000000, 10000000, 10000000
local CLAIMED, SLACK, LONGEST, TOMBSTONE, PLACES = 3600000000, 1000000, 34560000000000, 10000000, 1000
local NEVER, PHANTOM = -1, ''

-- A tier's terms and an entry's fields, by position.
local SIZE, NUM, DEN, START, LENGTH = 1, 2, 3, 4, 5
local NODE, SEQ, RECEIVED, RETURNED, DEBT, HOLD, EXPIRES, AT, GRANT, FRESH, GRANTED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11

local min, max, fmod = math.min, math.max, math.fmod

-- div is a/b rounded down, up is a/b rounded up. fmod is exact, a - r lies
-- towards 0 from a and so stays exact, and so does the division of a multiple.
local function div(a, b)
  local r = fmod(a, b)
  local q = (a - r) / b
  if r < 0 then q = q - 1 end
  return q
end

local function up(a, b)
  local r = fmod(a, b)
  local q = (a - r) / b
  if r > 0 then q = q + 1 end
  return q
end

-- The state. t is nil where there is no key.
local t, offset, kind, size, num, den, length, level, tier, asked, owner, window, used, past, nodes, records
local packed = redis.call('GET', KEYS[1])
if packed then
  t, offset, kind, size, num, den, length, level, tier, asked, owner, window, used, past, nodes, records = cmsgpack.unpack(packed)
end

local function save(life)
  redis.call('SET', KEYS[1], cmsgpack.pack(t, offset, kind, size, num, den, length, level, tier, asked, owner,
    window, used, past, nodes, records), 'PX', string.format('%.0f', up(life, 1000)))
end

local function clock_at(raw)
  local last, off = 0, 0
  if t then
    last, off = t, offset
  elseif seen > 0 then
    last = seen + least_since
  end
  local now = max(raw + off, last)
  if seen > 0 and now > seen + most_since + TOLERANCE then
    now = max(last, seen + least_since)
  end
  return now
end

local function find(name)
  for _, e in ipairs(nodes) do
    if e[NODE] == name then return e end
  end
end

local function outstanding(at)
  local sum = 0
  for _, e in ipairs(nodes) do
    if e[EXPIRES] > at then sum = sum + e[HOLD] end
  end
  return sum
end
