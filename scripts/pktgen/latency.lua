-- Latency at shares of the throughput: pktgen's own probes among the load, both ports on one generator.
--
--   RATES="10 50 90" SIZE=1024 SECONDS=120 \
--       pktgen -l 0-4 -a 81:00.0 -a 81:00.1 -- -P -m "[1:2].0,[3:4].1" -f scripts/pktgen/latency.lua
--
-- RATES are percents of the link: give 10, 50 and 90 % of what throughput.lua found. Probes are UDP frames of pktgen's own:
-- they go by the default priority unless the switch trusts something in them, so they see that queue.

package.path = package.path .. ";?.lua;scripts/pktgen/?.lua"
require "Pktgen"
local lab = require "lab"

local seconds = lab.number("SECONDS", 120)
local interval_us = lab.number("PROBE_US", 1000)

pktgen.screen("off")
pktgen.stop("all")
lab.single(lab.number("SIZE", 1024))
for _, port in ipairs({ lab.tx, lab.rx }) do
    pktgen.latency(port, "enable")
    pktgen.latency(port, "rate", interval_us)
end
lab.say("%7s  %8s  %9s  %9s  %9s  %10s", "rate %", "probes", "min us", "mean us", "max us", "lost")
for _, rate in ipairs(lab.words("RATES", "10 50 90")) do
    local sent, received = lab.trial(tonumber(rate), seconds * 1000)
    local found = pktgen.pktStats(lab.rx)[tonumber(lab.rx)].latency
    lab.say("%7s  %8d  %9.2f  %9.2f  %9.2f  %10d", rate, found.num_pkts, found.min_us, found.avg_us, found.max_us,
        math.max(0, sent - received))
end
for _, port in ipairs({ lab.tx, lab.rx }) do
    pktgen.latency(port, "disable")
end
pktgen.quit()
