-- RoCE incast: bursts of a capture into a slower port, and what of them arrives.
--
--   npcc-switch gen-pcap -o incast.pcap --senders 16 --qps 64 --ops write=8 --frames 1082 --count 65536 --dst-mac SWITCH_MAC
--   BURSTS="64 1024 16384" RATE=100 GAP_MS=200 \
--       pktgen -l 0-4 -a 81:00.0 -a 81:00.1 -- -P -m "[1:2].0,[3:4].1" -s 0:incast.pcap -f scripts/pktgen/incast.lua
--
-- Each burst is so many frames at RATE percent of the sending link, repeated ROUNDS times with a gap that lets queues drain.
-- Look at `npcc-switch show queues --watch`, `show npcc` and `show pfc` meanwhile. Pktgen does not obey CNPs or pause.

package.path = package.path .. ";?.lua;scripts/pktgen/?.lua"
require "Pktgen"
local lab = require "lab"

local rate = lab.number("RATE", 100)
local gap_ms = lab.number("GAP_MS", 200)
local rounds = lab.number("ROUNDS", 20)

pktgen.screen("off")
pktgen.stop("all")
pktgen.pcap(lab.tx, "on")
pktgen.set(lab.tx, "rate", rate)
lab.say("%8s  %7s  %10s  %10s  %10s", "burst", "rounds", "sent", "received", "lost")
for _, burst in ipairs(lab.words("BURSTS", "64 1024 16384")) do
    pktgen.clr()
    pktgen.set(lab.tx, "count", tonumber(burst))
    for _ = 1, rounds do
        pktgen.start(lab.tx)
        while pktgen.isSending(lab.tx)[tonumber(lab.tx)] == "y" do
            pktgen.delay(1)
        end
        pktgen.delay(gap_ms)
    end
    pktgen.stop(lab.tx)
    pktgen.delay(lab.number("DRAIN_MS", 1000))
    local sent, received = lab.sent(), lab.received()
    lab.say("%8s  %7d  %10d  %10d  %10d", burst, rounds, sent, received, math.max(0, sent - received))
end
pktgen.quit()
