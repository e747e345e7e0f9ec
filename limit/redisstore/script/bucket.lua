-- Token and leaky buckets. level is in shares*den.
local KIND = 0

local function length_of() return 0 end

local function top(out) return max(size - out, 0) * den end

local function begin(shares) level = shares * den end

local function left() return div(level, den) end

local function debit(n)
  if n > 0 then level = max(level - n * den, -size * den) end
end

local function credit(n)
  if n > 0 then level = level + n * den end
end

local function ends(from, to)
  local list = {}
  for _, e in ipairs(nodes) do
    if e[HOLD] > 0 and e[EXPIRES] > from and e[EXPIRES] <= to then list[#list + 1] = e end
  end
  if #list > 1 then
    table.sort(list, function(a, b) return a[EXPIRES] < b[EXPIRES] end)
  end
  return list
end

local function rise(elapsed, out)
  local most = top(out)
  local missing = most - level
  if missing <= 0 then
    level = most
  elseif num > 0 then
    if elapsed >= up(missing, num) then level = most else level = level + num * elapsed end
  end
end

local function advance(now)
  if owner == '' then
    local at, out = t, outstanding(t)
    for _, e in ipairs(ends(t, now)) do
      rise(e[EXPIRES] - at, out)
      at, out = e[EXPIRES], out - e[HOLD]
    end
    rise(now - at, out)
  end
  t = now
end

local function cap()
  if owner == '' then level = min(level, top(outstanding(t))) end
end

local function wait_for(need)
  if need > size then return NEVER end
  if left() >= need then return 0 end
  if num == 0 then return NEVER end
  local goal, l, at, out = need * den, level, t, outstanding(t)
  for _, e in ipairs(ends(t, 2 ^ 62)) do
    local most = top(out)
    if goal <= most and at + up(goal - l, num) <= e[EXPIRES] then break end
    local elapsed = e[EXPIRES] - at
    if elapsed >= up(most - l, num) then l = most else l = l + num * elapsed end
    at, out = e[EXPIRES], out - e[HOLD]
  end
  return at + up(goal - l, num) - t
end

local function filling()
  local missing = size * den - level
  if missing == 0 then return 0 end
  if num == 0 then return LONGEST end
  local last = t
  for _, e in ipairs(nodes) do
    if e[HOLD] > 0 then last = max(last, e[EXPIRES]) end
  end
  return last - t + up(missing, num)
end

local function adopt(terms)
  if size == terms[SIZE] and num == terms[NUM] and den == terms[DEN] then return end
  local have = left()
  local after = have + terms[SIZE] - size
  size, num, den = terms[SIZE], terms[NUM], terms[DEN]
  level = max(after, min(have, 0), -size) * den
end

local function lose()
  begin(0)
  nodes = {{PHANTOM, 0, 0, 0, 0, size, t + lease, t, 0, 0, 0}}
end

local function window_ends() end
