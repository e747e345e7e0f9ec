-- Exact logs, over the window's length and the lease. A record is an instant and
-- the shares granted then.
local KIND = 3

local function length_of(terms) return terms[LENGTH] + lease end

local function logged()
  local sum = 0
  for _, r in ipairs(records) do sum = sum + r[2] end
  return sum
end

local function record(shares)
  if shares <= 0 then return end
  local last = records[#records]
  if last and (last[1] == t or #records == PLACES) then
    last[1], last[2] = t, last[2] + shares
  else
    records[#records + 1] = {t, shares}
  end
end

local function begin(shares)
  records = {}
  record(size - shares)
end

local function left() return size - logged() end

local function debit(n)
  if n > 0 then record(min(n, 2 * size - logged())) end
end

local function credit(n, e)
  if n <= 0 then return end
  n = min(n, e[FRESH])
  e[FRESH] = e[FRESH] - n
  for _, r in ipairs(records) do
    if r[1] == e[GRANTED] then r[2] = max(r[2] - n, 0) end
  end
end

local function advance(now)
  local live = {}
  for _, r in ipairs(records) do
    if r[1] + length > now and r[2] > 0 then live[#live + 1] = r end
  end
  records, t = live, now
end

local function cap() end

local function window_ends() end

local function wait_for(need)
  if need > size then return NEVER end
  local have = left()
  if have >= need then return 0 end
  for _, r in ipairs(records) do
    have = have + r[2]
    if have >= need then return r[1] + length - t end
  end
  return NEVER
end

local function filling()
  local last = t
  for _, r in ipairs(records) do last = max(last, r[1] + length) end
  return last - t
end

local function adopt(terms)
  if size == terms[SIZE] and length == length_of(terms) then return end
  local after, same = left() + terms[SIZE] - size, length == length_of(terms)
  size, length = terms[SIZE], length_of(terms)
  if not same then begin(max(after, -size)) end
end

local function lose() begin(0) end
