// An SDR SDRAM that checks every rule of state and timing of its data sheet; cycle by cycle, at its clock.
//
// Cells that were never written, rows that were not refreshed in time and a bus that nobody drives read as POISON. The first
// violation is kept; after it the memory does nothing any more, and the simulation that it belongs to ends. sdram.v has the
// same rules for Verilog simulators; a test holds both against each other.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

const uint32_t POISON = 0xDEADBEEF;

// The memory's numbers, in the order in which Python gives them. Times are in cycles; `refreshes`: those of power-up; `capture`:
// as of `ExternalMemory`: by one less than that the data reaches the pads late.
struct sdram_numbers {
	uint32_t data_bits, banks, rows, columns, cas_latency, rcd, rp, ras, rc, rfc, wr, rrd, mrd, power_up, refreshes, retention,
		capture;
};

// Levels of the pins in one cycle, as the memory sees them at its clock edge; commands are high if active.
struct sdram_pins {
	uint32_t cke, cs, ras, cas, we, ba, a, dqm, dq, dq_driven;
};

class sdram {
	struct row_data {
		std::vector<uint32_t> cells;
		std::vector<uint8_t> known;
	};
	struct bank_state {
		bool open = false;
		uint32_t row = 0;
		int64_t activated = -1000, precharged = -1000, written = -1000;
		std::vector<int64_t> refreshed;
		std::unordered_map<uint32_t, row_data> rows;
	};
	struct answer {
		int64_t cycle;
		uint32_t data;
		bool known;
	};
	sdram_numbers n;
	std::vector<bank_state> banks;
	std::vector<answer> answers;
	int64_t cycle = 0, ready_since = -1, refreshed = -1000, mode_set = -1000, activated = -1000, drives_until = -1000;
	uint32_t refreshes = 0, next_row = 0, mask_before[2] = {0, 0};
	bool precharged_once = false, moded = false;

	void fail(const char *rule, const char *what, int64_t number = -1) {
		if (violated)
			return;
		violated = true;
		if (number >= 0)
			snprintf(message, sizeof message, "cycle %lld: %s: %s %lld", (long long)cycle, rule, what, (long long)number);
		else
			snprintf(message, sizeof message, "cycle %lld: %s: %s", (long long)cycle, rule, what);
	}
	uint32_t all() const {
		return n.data_bits == 32 ? 0xFFFFFFFFu : (1u << n.data_bits) - 1;
	}
	// A row that came too late has lost what was in it.
	void restore(bank_state &bank, uint32_t row) {
		if (cycle - bank.refreshed[row] > int64_t(n.retention)) {
			auto found = bank.rows.find(row);
			if (found != bank.rows.end()) {
				lost++;
				std::fill(found->second.known.begin(), found->second.known.end(), 0);
			}
		}
		bank.refreshed[row] = cycle;
	}
	// Rules that every command but NOP has: the mode register's and the refresh's time.
	bool settled() {
		if (cycle - mode_set < int64_t(n.mrd))
			return fail("tMRD", "a command too soon after the mode register"), false;
		if (cycle - refreshed < int64_t(n.rfc))
			return fail("tRFC", "a command too soon after REFRESH"), false;
		return true;
	}
	bool all_closed() {
		for (auto &bank : banks)
			if (bank.open)
				return false;
		return true;
	}
	bool all_precharged() {
		for (auto &bank : banks)
			if (cycle - bank.precharged < int64_t(n.rp))
				return false;
		return true;
	}
	void activate(const sdram_pins &p) {
		bank_state &bank = banks[p.ba];
		if (!moded)
			return fail("mode", "ACTIVATE before the mode register was written");
		if (bank.open)
			return fail("open", "ACTIVATE of a bank with an open row, bank", p.ba);
		if (p.a >= n.rows)
			return fail("address", "ACTIVATE of a row that there is not", p.a);
		if (cycle - bank.precharged < int64_t(n.rp))
			return fail("tRP", "ACTIVATE too soon after PRECHARGE, bank", p.ba);
		if (cycle - bank.activated < int64_t(n.rc))
			return fail("tRC", "ACTIVATE too soon after ACTIVATE of the bank, bank", p.ba);
		if (cycle - activated < int64_t(n.rrd))
			return fail("tRRD", "ACTIVATE too soon after ACTIVATE of another bank, bank", p.ba);
		restore(bank, p.a);
		bank.open = true;
		bank.row = p.a;
		bank.activated = activated = cycle;
	}
	row_data &row_of(uint32_t address) {
		uint32_t place = address / n.columns;
		row_data &row = banks[place % n.banks].rows[place / n.banks % n.rows];
		if (row.cells.empty()) {
			row.cells.resize(n.columns);
			row.known.resize(n.columns);
		}
		return row;
	}
	void column(const sdram_pins &p, bool write) {
		bank_state &bank = banks[p.ba];
		if (!bank.open)
			return fail("closed", "a column of a bank without an open row, bank", p.ba);
		if (cycle - bank.activated < int64_t(n.rcd))
			return fail("tRCD", "a column too soon after ACTIVATE, bank", p.ba);
		if (p.a & 1 << 10)
			return fail("A10", "a column with precharge, bank", p.ba);
		if (p.a >= n.columns)
			return fail("address", "a column that there is not", p.a);
		row_data &row = bank.rows[bank.row];
		if (row.cells.empty()) {
			row.cells.resize(n.columns);
			row.known.resize(n.columns);
		}
		uint32_t lanes = n.data_bits / 8, keep = 0;
		if (!write) {
			answers.push_back({cycle + n.cas_latency + n.capture - 1, row.cells[p.a], bool(row.known[p.a])});
			return;
		}
		if (!p.dq_driven)
			return fail("data", "WRITE without data");
		for (uint32_t lane = 0; lane < lanes; lane++)
			if (p.dqm >> lane & 1)
				keep |= 0xFFu << 8 * lane;
		row.cells[p.a] = (row.cells[p.a] & keep) | (p.dq & all() & ~keep);
		if (!keep)
			row.known[p.a] = 1;
		bank.written = cycle;
	}
	void precharge(const sdram_pins &p) {
		for (uint32_t number = 0; number < n.banks; number++) {
			bank_state &bank = banks[number];
			if (!(p.a & 1 << 10) && number != p.ba)
				continue;
			if (bank.open && cycle - bank.activated < int64_t(n.ras))
				return fail("tRAS", "PRECHARGE too soon after ACTIVATE, bank", number);
			if (bank.open && cycle - bank.written < int64_t(n.wr))
				return fail("tWR", "PRECHARGE too soon after a write, bank", number);
			bank.open = false;
			bank.precharged = cycle;
		}
		if (p.a & 1 << 10)
			precharged_once = true;
	}
	void refresh() {
		if (!precharged_once)
			return fail("power-up", "REFRESH before all banks were precharged");
		if (!all_closed())
			return fail("open", "REFRESH with an open row");
		if (!all_precharged())
			return fail("tRP", "REFRESH too soon after PRECHARGE");
		for (auto &bank : banks)
			restore(bank, next_row);
		next_row = (next_row + 1) % n.rows;
		refreshes++;
		refreshed = cycle;
	}
	void set_mode(const sdram_pins &p) {
		if (!precharged_once || !all_closed())
			return fail("open", "the mode register with rows that are not closed");
		if (!all_precharged())
			return fail("tRP", "the mode register too soon after PRECHARGE");
		if (refreshes < n.refreshes)
			return fail("power-up", "the mode register before the refreshes of power-up, of which there were", refreshes);
		if (p.a != n.cas_latency << 4 || p.ba)
			return fail("mode", "the mode register is not bursts of one column with the right CAS latency:", p.a);
		moded = true;
		mode_set = cycle;
	}
	void command(const sdram_pins &p) {
		unsigned op = p.ras << 2 | p.cas << 1 | p.we;
		if (!p.cs || !op)
			return;
		if (cycle - ready_since < int64_t(n.power_up))
			return fail("power-up", "a command before the time of power-up has passed");
		if (!settled())
			return;
		if (p.ba >= n.banks)
			return fail("address", "a bank that there is not", p.ba);
		if (op == 4)
			activate(p);
		else if (op == 2 || op == 3)
			column(p, op == 3);
		else if (op == 5)
			precharge(p);
		else if (op == 6)
			refresh();
		else if (op == 7)
			set_mode(p);
		else
			fail("command", "BURST STOP, which bursts of one column have no use for");
	}

public:
	bool violated = false;
	char message[160] = "";
	// Rows that were lost, words that were read and not known, words read, words written.
	uint64_t lost = 0, unknown = 0, reads = 0, writes = 0;
	// What the pins DQ show towards the pads in this cycle.
	uint32_t dq = POISON;
	bool known = false;

	explicit sdram(const sdram_numbers &numbers) : n(numbers), banks(numbers.banks) {
		for (auto &bank : banks)
			bank.refreshed.assign(n.rows, 0);
	}
	int64_t now() const {
		return cycle;
	}

	// A column by its address (row, bank, column), written or read past the pins; `get` tells whether it is known.
	void put(uint32_t address, uint32_t data) {
		row_data &row = row_of(address);
		row.cells[address % n.columns] = data & all();
		row.known[address % n.columns] = 1;
	}
	bool get(uint32_t address, uint32_t &data) {
		row_data &row = row_of(address);
		data = row.cells[address % n.columns];
		return row.known[address % n.columns];
	}

	// One cycle; `dq` and `known` are then what the memory drives in it.
	void step(const sdram_pins &p) {
		dq = POISON & all();
		known = false;
		if (violated)
			return;
		if (!p.cke && ready_since >= 0)
			fail("CKE", "low after power-up");
		if (p.cke && ready_since < 0)
			ready_since = cycle;
		if (ready_since >= 0)
			command(p);
		bool writes_now = p.cs && !p.ras && p.cas && p.we;
		writes += writes_now;
		if (p.dq_driven && !writes_now)
			fail("data", "the pads drive DQ without a write");
		bool drives = false;
		for (size_t i = 0; i < answers.size(); i++) {
			if (answers[i].cycle != cycle)
				continue;
			drives = true;
			reads++;
			// DQM masks what is read two cycles later.
			bool masked = mask_before[1] != 0;
			known = answers[i].known && !masked;
			if (known)
				dq = answers[i].data;
			else
				unknown++;
			answers.erase(answers.begin() + i);
			break;
		}
		// The memory lets go of DQ up to 7 ns after its clock edge (tHZ), so that the cycle after is not the pads' yet.
		if (p.dq_driven && (drives || cycle <= drives_until))
			fail("contention", "the pads drive DQ while the memory does");
		if (drives)
			drives_until = cycle + 1;
		mask_before[1] = mask_before[0];
		mask_before[0] = p.dqm;
		cycle++;
	}
};

}
