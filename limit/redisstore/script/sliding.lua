-- Sliding counters, over the window's length and the lease.
local KIND = 2

local function length_of(terms) return terms[LENGTH] + lease end

-- ratio is a*b/c rounded down where a*b is beyond 2^53: a long division, four
-- bits at a time. a < 2^47, b < 2^48, c < 2^48.
local function ratio(a, b, c)
  local q, r = 0, 0
  for i = 11, 0, -1 do
    local unit = 16 ^ i
    local digit = (a - fmod(a, unit)) / unit
    a = a - digit * unit
    local n = r * 16 + b * digit
    r = fmod(n, c)
    q = q * 16 + (n - r) / c
  end
  return q
end

local function weight()
  return past - ratio(past, t - window * length, length)
end

local function begin(shares) window, used, past = div(t, length), size - shares, 0 end

local function left() return size - used - weight() end

local function debit(n)
  if n > 0 then used = min(used + n, 2 * size) end
end

local function credit(n, e)
  if n <= 0 then return end
  n = min(n, e[FRESH])
  e[FRESH] = e[FRESH] - n
  local ago = window - div(e[GRANTED], length)
  if ago == 0 then
    used = max(used - n, 0)
  elseif ago == 1 then
    past = max(past - n, 0)
  end
end

local function advance(now)
  local w = div(now, length)
  if w == window + 1 then
    window, past, used = w, used, 0
  elseif w ~= window then
    window, past, used = w, 0, 0
  end
  t = now
end

local function cap() end

local function window_ends() end

local function lighter(was, room)
  if was <= room then return 0 end
  return length - ratio(room, length, was)
end

local function wait_for(need)
  if need > size then return NEVER end
  if left() >= need then return 0 end
  local began, room = window * length, size - used - need
  if room >= 0 then return began + lighter(past, room) - t end
  return began + length + lighter(used, size - need) - t
end

local function filling() return (window + 2) * length - t end

local function adopt(terms)
  if size == terms[SIZE] and length == length_of(terms) then return end
  local after, same = left() + terms[SIZE] - size, length == length_of(terms)
  size, length = terms[SIZE], length_of(terms)
  if same then
    used, past = min(used, 2 * size), min(past, 2 * size)
  else
    begin(max(after, -size))
  end
end

local function lose() begin(0) end
