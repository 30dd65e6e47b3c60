-- What the scripts share: settings from the environment, statistics, and a mock-free check that pktgen is there.
--
-- For pktgen-dpdk 23.06, whose Pktgen.lua must be on the path (it is when pktgen is started in its folder).

local lab = {}

-- A number from the environment.
function lab.number(name, default)
    local text = os.getenv(name)
    if text == nil then
        return default
    end
    return assert(tonumber(text), name .. " is no number: " .. text)
end

-- Words separated by spaces or commas.
function lab.words(name, default)
    local words = {}
    for word in (os.getenv(name) or default):gmatch("[^%s,]+") do
        words[#words + 1] = word
    end
    return words
end

-- The port that sends and the port that receives; pktgen names them by text.
lab.tx = os.getenv("TX_PORT") or "0"
lab.rx = os.getenv("RX_PORT") or "1"

function lab.sent()
    return pktgen.portStats(lab.tx, "port")[tonumber(lab.tx)].opackets
end

function lab.received()
    return pktgen.portStats(lab.rx, "port")[tonumber(lab.rx)].ipackets
end

-- Link speed in bit/s: pktgen says "<UP-100000-FD>".
function lab.link()
    local state = pktgen.linkState(lab.tx)[tonumber(lab.tx)]
    local mbps = tonumber(state:match("%d+"))
    assert(mbps and mbps > 0, "port " .. lab.tx .. " has no link: " .. state)
    return mbps * 1e6
end

-- Sends for so many ms at so many percent of the link; returns frames sent and received.
function lab.trial(rate, ms)
    pktgen.clr()
    pktgen.set(lab.tx, "rate", rate)
    pktgen.set(lab.tx, "count", 0)
    pktgen.delay(200)
    pktgen.start(lab.tx)
    pktgen.delay(ms)
    pktgen.stop(lab.tx)
    -- What is still queued in the switch has time to arrive.
    pktgen.delay(lab.number("DRAIN_MS", 1000))
    return lab.sent(), lab.received()
end

-- Frames of one size as a test of the forwarding path: UDP to RoCEv2's port. The ICRC is not right; captures have it right.
function lab.single(size)
    pktgen.set(lab.tx, "size", size)
    pktgen.set_type(lab.tx, "ipv4")
    pktgen.set_proto(lab.tx, "udp")
    pktgen.set_mac(lab.tx, "dst", os.getenv("SWITCH_MAC") or "02:00:00:00:01:01")
    pktgen.set_ipaddr(lab.tx, "src", (os.getenv("SRC_IP") or "10.0.1.3") .. "/24")
    pktgen.set_ipaddr(lab.tx, "dst", os.getenv("DST_IP") or "10.0.2.2")
    pktgen.set(lab.tx, "sport", 49152)
    pktgen.set(lab.tx, "dport", 4791)
end

function lab.say(format, ...)
    io.write(string.format(format, ...), "\n")
    io.flush()
end

return lab
