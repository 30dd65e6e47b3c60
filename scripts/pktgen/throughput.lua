-- RFC 2544, 26.1: the highest rate at which no frame is lost, for each frame size, by halving.
--
--   SIZES="64 128 256 512 1024 1280 1518" TRIAL_MS=10000 CONFIRM_MS=60000 STEP=0.1 LOSS=0 \
--       pktgen -l 0-4 -a 81:00.0 -a 81:00.1 -- -P -m "[1:2].0,[3:4].1" -f scripts/pktgen/throughput.lua
--
-- With a capture for the sending port (-s 0:roce.pcap) give SIZES=pcap: its frames are sent, right ICRC and all.
-- LOSS is in percent; RFC 2544 asks for 0.

package.path = package.path .. ";?.lua;scripts/pktgen/?.lua"
require "Pktgen"
local lab = require "lab"

local trial_ms = lab.number("TRIAL_MS", 10000)
local confirm_ms = lab.number("CONFIRM_MS", 60000)
local step = lab.number("STEP", 0.1)
local loss_allowed = lab.number("LOSS", 0)

local function lost(rate, ms)
    local sent, received = lab.trial(rate, ms)
    assert(sent > 0, "nothing was sent: is port " .. lab.tx .. " up?")
    return 100 * math.max(0, sent - received) / sent, sent, received
end

-- The highest rate in percent whose loss is allowed, within a step; 0 when none is.
local function search()
    local low, high = 0, 100
    if lost(high, trial_ms) <= loss_allowed then
        return high
    end
    while high - low > step do
        local middle = (low + high) / 2
        local loss = lost(middle, trial_ms)
        lab.say("    %7.3f %%  loss %.6f %%", middle, loss)
        if loss <= loss_allowed then
            low = middle
        else
            high = middle
        end
    end
    return low
end

pktgen.screen("off")
pktgen.stop("all")
lab.say("%6s  %9s  %10s  %12s  confirmed", "size", "rate %", "Mpps", "Gbit/s wire")
for _, size in ipairs(lab.words("SIZES", "64 128 256 512 1024 1280 1518")) do
    if size == "pcap" then
        pktgen.pcap(lab.tx, "on")
    else
        lab.single(tonumber(size))
    end
    local rate = search()
    local confirmed = "no rate without loss"
    local sent = 0
    if rate > 0 then
        local loss
        loss, sent = lost(rate, confirm_ms)
        confirmed = loss <= loss_allowed and "yes" or string.format("NO: %.6f %% lost", loss)
    end
    local mpps = sent / confirm_ms / 1000
    lab.say("%6s  %9.3f  %10.3f  %12.3f  %s", size, rate, mpps, rate / 100 * lab.link() / 1e9, confirmed)
end
pktgen.quit()
