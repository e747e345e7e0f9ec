-- One step on slots. A record is until when, how many, whose, which.
local KIND = 4
local UNTIL, SHARES, WHOSE, WHICH = 1, 2, 3, 4

local function left()
  local free_slots = size
  for _, r in ipairs(records) do free_slots = free_slots - r[SHARES] end
  return free_slots
end

local function wait_for(need)
  if need > size then return NEVER end
  local have = left()
  if have >= need then return 0 end
  local by_end = {}
  for i, r in ipairs(records) do by_end[i] = r end
  table.sort(by_end, function(a, b) return a[UNTIL] < b[UNTIL] end)
  for _, r in ipairs(by_end) do
    have = have + r[SHARES]
    if have >= need then return r[UNTIL] - t end
  end
  return NEVER
end

local raw = clock()
local now = clock_at(raw)
local terms = tiers[want + 1]
local changed = t and kind ~= KIND
if not t or changed then
  if op == RESET then return {0, now, 0, 0, 0, 0, 0, 0, 0, ''} end
  kind, size, num, den, length, asked, owner = KIND, terms[SIZE], 0, 1, 0, 0, ''
  level, window, used, past, nodes, records = 0, 0, 0, 0, {}, {}
  if changed or lost or received > 0 then records = {{now + lease, size, PHANTOM, 0}} end
end
if tier == nil or changed then tier = want end
t, offset = now, now - raw

local live, found = {}, nil
for _, r in ipairs(records) do
  if r[UNTIL] > t then
    live[#live + 1] = r
    if r[WHOSE] == node and r[WHICH] == seq then found = #live end
  end
end
records = live

local granted, wait = 0, 0
if op ~= RESET then
  size, tier = terms[SIZE], want
  if op == FREE then
    if found then
      table.remove(records, found)
    elseif #records < PLACES then
      records[#records + 1] = {t + TOMBSTONE, 0, node, seq}
    end
  elseif found then
    granted = records[found][SHARES]
  elseif ask > 0 and left() >= ask + floor and #records < PLACES then
    records[#records + 1] = {t + lease, ask, node, seq}
    granted = ask
  end
  if granted == 0 and op == SLOT then wait = wait_for(ask + floor) end
end

local last = t
for _, r in ipairs(records) do last = max(last, r[UNTIL]) end
local life = min(last - t, LONGEST) + SLACK
save(life)
return {0, t, granted, left(), wait, 0, tier, 0, life, ''}
