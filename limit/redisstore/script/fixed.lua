-- Fixed windows. level is what is left of the present one.
local KIND = 1

local function length_of(terms) return terms[LENGTH] end

local function begin(shares) window, level = div(t, length), shares end

local function left() return level end

local function debit(n)
  if n > 0 then level = max(level - n, -size) end
end

local function credit(n)
  if n > 0 then level = min(level + n, size) end
end

local function advance(now)
  local w = div(now, length)
  if w > window then
    window, level = w, size
    for _, e in ipairs(nodes) do e[HOLD] = 0 end
  end
  t = now
end

local function cap() end

local function window_ends() return (window + 1) * length end

local function wait_for(need)
  if need > size then return NEVER end
  if left() >= need then return 0 end
  return window_ends() - t
end

local function filling() return window_ends() - t end

local function adopt(terms)
  if size == terms[SIZE] and length == terms[LENGTH] then return end
  local after = left() + terms[SIZE] - size
  size, length = terms[SIZE], terms[LENGTH]
  begin(max(after, -size))
end

local function lose() begin(0) end
