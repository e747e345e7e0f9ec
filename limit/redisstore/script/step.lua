-- One step on a bucket or a window: ledger's step.go and draw.go.

local function held_by_others()
  local till = 0
  for _, e in ipairs(nodes) do
    if e[NODE] ~= node and e[HOLD] > 0 and e[EXPIRES] > t then till = max(till, e[EXPIRES]) end
  end
  return till
end

local function machine(name) return string.match(name, '^[^#]*') end

local function others()
  local own, seen_names, n = machine(node), {}, 0
  for _, e in ipairs(nodes) do
    local name = machine(e[NODE])
    if name ~= own and name ~= PHANTOM and e[AT] + LATELY > t and not seen_names[name] then
      seen_names[name] = true
      n = n + 1
    end
  end
  return n
end

local function keep()
  if owner ~= '' then return CLAIMED end
  local life = filling()
  for _, e in ipairs(nodes) do life = max(life, e[EXPIRES] + PURGE - t) end
  return min(life, LONGEST) + SLACK
end

local function enter(now)
  if owner == '' or (owner == node and (op == CLAIM or op == GIVE)) then return true end
  if op == GIVE or op == RESET then return false end
  if owner == node or owner == steal then
    owner, level, t = '', 0, now
  elseif owner == free then
    owner = ''
  else
    return false
  end
  return true
end

local function choose_tier()
  tier = min(tier, #tiers - 1)
  if stay or want == tier then
    asked = 0
  elseif asked == 0 then
    asked = t
  elseif t - asked >= TIER_HOLD then
    tier, asked = want, 0
  end
end

local function grantable(elapsed)
  if num == 0 or elapsed >= up(size * den, num) then return 2 * size end
  return size + div(num * elapsed, den)
end

local function settle(e)
  local live = e[EXPIRES] > t
  local gone = e[RECEIVED] - received
  if gone > 0 then
    gone = min(gone, e[HOLD])
    e[HOLD] = e[HOLD] - gone
    if live then credit(gone, e) end
  elseif gone < 0 then
    gone = min(-gone, grantable(t - e[AT]))
    e[HOLD] = e[HOLD] + gone
    debit(gone)
  end
  local holds = min(hold, e[HOLD])
  if op == CLAIM then holds = 0 end
  local back = min(returned - e[RETURNED], e[HOLD] - holds)
  if live and back > 0 then credit(back, e) end
  debit(min(debt - e[DEBT], size))
  e[RECEIVED], e[RETURNED], e[DEBT], e[HOLD] = received, returned, debt, holds
end

local function draw(fresh)
  local e = find(node)
  if not e then
    e = {node, 0, received, returned, 0, 0, 0, 0, 0, 0, 0}
    nodes[#nodes + 1] = e
    if fresh then
      e[HOLD] = min(hold, size)
    else
      e[HOLD] = min(received, size)
      debit(e[HOLD])
    end
  end
  settle(e)
  e[SEQ], e[AT], e[GRANT], e[EXPIRES] = seq, t, 0, t + lease
  if KIND == 1 then e[EXPIRES] = min(e[EXPIRES], window_ends()) end
  cap()
  if op == CLAIM then
    if owner ~= node and held_by_others() == 0 then
      if owned then level = min(level, max(give_level, -size) * den) end
      owner = node
    end
    return 0
  end
  local n = min(ask, left() - floor)
  if n <= 0 or n < least then return 0 end
  debit(n)
  e[GRANT], e[FRESH], e[GRANTED] = n, n, t
  e[HOLD], e[RECEIVED] = e[HOLD] + n, e[RECEIVED] + n
  return n
end

local function give()
  local l = max(min(give_level, size), -size) * den
  if owner ~= node then l = min(l, level) end
  owner, level = '', l
  local e = find(node)
  if not e then
    e = {node, 0, received, returned, debt, 0, 0, 0, 0, 0, 0}
    nodes[#nodes + 1] = e
  end
  e[SEQ], e[AT], e[HOLD], e[GRANT], e[EXPIRES] = seq, t, 0, 0, t + lease
end

local function forgettable()
  for _, e in ipairs(nodes) do
    if e[NODE] ~= node and e[EXPIRES] > t then return false end
  end
  return owner == '' and level == size * den
end

local function forget()
  local live = {}
  for _, e in ipairs(nodes) do
    if e[EXPIRES] + PURGE > t then live[#live + 1] = e end
  end
  nodes = live
end

local raw = clock()
local now = clock_at(raw)
local terms = tiers[want + 1]
local changed = t and kind ~= KIND
local fresh = not t or changed
if fresh then
  if op == RESET or (op == GIVE and give_level >= terms[SIZE]) then
    return {0, now, 0, 0, 0, 0, 0, 0, 0, ''}
  end
  t, kind, size, num, den, length, tier, asked, owner = now, KIND, terms[SIZE], 0, 1, length_of(terms), want, 0, ''
  if KIND == 0 then num, den = terms[NUM], terms[DEN] end
  level, window, used, past, nodes, records = 0, 0, 0, 0, {}, {}
  if op == GIVE or (op == CLAIM and owned) then
    begin(size)
  elseif changed or lost or received > 0 then
    lose()
  else
    begin(terms[START])
  end
end

local mine = find(node)
if op ~= RESET and mine and seq < mine[SEQ] then return {1} end
local replay = op ~= RESET and mine and seq == mine[SEQ]
if not replay and not enter(now) then
  return {0, now, 0, 0, 0, 0, tier, 0, max(t + CLAIMED - now, 0), owner}
end
advance(now)
offset = now - raw
if not replay then
  choose_tier()
  adopt(tiers[tier + 1])
end
local granted = 0
if replay then
  if mine[EXPIRES] > t and (KIND ~= 1 or div(mine[GRANTED], length) == window) then granted = mine[GRANT] end
elseif op == RESET then
  begin(max(size - outstanding(t), 0))
elseif op == GIVE then
  give()
else
  granted = draw(fresh)
end
cap()
forget()

local wait, ending, life = 0, 0, keep()
if op == DRAW and granted == 0 and least > 0 then
  wait = wait_for(least + floor)
elseif op == CLAIM and owner ~= node then
  wait = max(held_by_others() - t, 0)
end
if KIND == 1 then ending = window_ends() - t end
local reply = {0, t, granted, left(), wait, ending, tier, others(), life, owner}
if op == GIVE and not replay and forgettable() then
  redis.call('DEL', KEYS[1])
else
  save(life)
end
return reply
