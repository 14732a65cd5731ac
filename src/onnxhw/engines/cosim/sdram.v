// An SDR SDRAM that checks every rule of state and timing of its data sheet: sdram.h for Verilog simulators.
//
// Cells that were never written, and rows that were not refreshed in time, are X. A violation is told as
// "SDRAM: cycle N: RULE"; after it the memory does nothing any more and, with STOP, the simulation ends.

`timescale 1ns/1ps

module onnxhw_sdram #(
	parameter DATA_BITS = 16, BANKS = 4, ROWS = 8192, COLUMNS = 512, CAS_LATENCY = 2, RCD = 3, RP = 3, RAS = 5, RC = 8, RFC = 7,
	WR = 2, RRD = 2, MRD = 2, POWER_UP = 20000, REFRESHES = 8, RETENTION = 6400000, CAPTURE = 1, STOP = 1
) (
	input clk, cke, cs_n, ras_n, cas_n, we_n,
	input [1:0] ba,
	input [12:0] a,
	input [DATA_BITS / 8 - 1:0] dqm,
	input dq_driven,  // whether the other side drives DQ; not a pin of the chip
	inout [DATA_BITS - 1:0] dq
);
	localparam LATENCY = CAS_LATENCY + CAPTURE - 1;
	reg [DATA_BITS - 1:0] cells [0:BANKS * ROWS * COLUMNS - 1];
	integer refreshed_row [0:BANKS * ROWS - 1];
	reg open [0:BANKS - 1];
	integer row [0:BANKS - 1];
	integer bank_activated [0:BANKS - 1];
	integer bank_precharged [0:BANKS - 1];
	integer bank_written [0:BANKS - 1];
	integer cycle, ready_since, refreshed, mode_set, activated, drives_until, refreshes, next_row, i, lost;
	reg precharged_once, moded, violated, any_open, early_precharge, writes, driving;
	reg [DATA_BITS - 1:0] answer [0:7];
	reg [7:0] answers;
	reg [DATA_BITS - 1:0] out, merged;
	reg [DATA_BITS / 8 - 1:0] mask_1, mask_2;

	assign dq = driving ? out : {DATA_BITS{1'bz}};

	initial begin
		cycle = 0; ready_since = -1; refreshed = -1000; mode_set = -1000; activated = -1000; drives_until = -1000;
		refreshes = 0; next_row = 0; lost = 0; precharged_once = 0; moded = 0; violated = 0; driving = 0; answers = 0;
		mask_1 = 0; mask_2 = 0;
		for (i = 0; i < BANKS; i = i + 1) begin
			open[i] = 0; row[i] = 0; bank_activated[i] = -1000; bank_precharged[i] = -1000; bank_written[i] = -1000;
		end
		for (i = 0; i < BANKS * ROWS; i = i + 1)
			refreshed_row[i] = 0;
	end

	task fail(input [8 * 12 - 1:0] rule);
		if (!violated) begin
			violated = 1;
			$display("SDRAM: cycle %0d: %0s", cycle, rule);
			if (STOP)
				$finish;
		end
	endtask

	task restore(input integer bank, input integer number);
		integer column;
		begin
			if (cycle - refreshed_row[bank * ROWS + number] > RETENTION) begin
				lost = lost + 1;
				for (column = 0; column < COLUMNS; column = column + 1)
					cells[(bank * ROWS + number) * COLUMNS + column] = {DATA_BITS{1'bx}};
			end
			refreshed_row[bank * ROWS + number] = cycle;
		end
	endtask

	task look;
		begin
			any_open = 0; early_precharge = 0;
			for (i = 0; i < BANKS; i = i + 1) begin
				any_open = any_open | open[i];
				early_precharge = early_precharge | (cycle - bank_precharged[i] < RP);
			end
		end
	endtask

	task activate;
		if (!moded) fail("mode");
		else if (open[ba]) fail("open");
		else if (a >= ROWS) fail("address");
		else if (cycle - bank_precharged[ba] < RP) fail("tRP");
		else if (cycle - bank_activated[ba] < RC) fail("tRC");
		else if (cycle - activated < RRD) fail("tRRD");
		else begin
			restore(ba, a);
			open[ba] = 1; row[ba] = a; bank_activated[ba] = cycle; activated = cycle;
		end
	endtask

	task column(input write);
		integer place, lane;
		if (!open[ba]) fail("closed");
		else if (cycle - bank_activated[ba] < RCD) fail("tRCD");
		else if (a[10]) fail("A10");
		else if (a >= COLUMNS) fail("address");
		else begin
			place = (ba * ROWS + row[ba]) * COLUMNS + a;
			if (!write) begin
				// The edge at which the command's cycle ends moves this on by one.
				answer[LATENCY] = cells[place];
				answers[LATENCY] = 1;
			end else if (!dq_driven) fail("data");
			else begin
				merged = cells[place];
				for (lane = 0; lane < DATA_BITS / 8; lane = lane + 1)
					if (!dqm[lane])
						merged[8 * lane +: 8] = dq[8 * lane +: 8];
				cells[place] = merged;
				bank_written[ba] = cycle;
			end
		end
	endtask

	task precharge;
		begin
			for (i = 0; i < BANKS; i = i + 1)
				if (!violated && (a[10] || i == ba)) begin
					if (open[i] && cycle - bank_activated[i] < RAS) fail("tRAS");
					else if (open[i] && cycle - bank_written[i] < WR) fail("tWR");
					else begin
						open[i] = 0; bank_precharged[i] = cycle;
					end
				end
			if (a[10])
				precharged_once = 1;
		end
	endtask

	task refresh;
		begin
			look;
			if (!precharged_once) fail("power-up");
			else if (any_open) fail("open");
			else if (early_precharge) fail("tRP");
			else begin
				for (i = 0; i < BANKS; i = i + 1)
					restore(i, next_row);
				next_row = (next_row + 1) % ROWS;
				refreshes = refreshes + 1;
				refreshed = cycle;
			end
		end
	endtask

	task set_mode;
		begin
			look;
			if (!precharged_once || any_open) fail("open");
			else if (early_precharge) fail("tRP");
			else if (refreshes < REFRESHES) fail("power-up");
			else if (a != CAS_LATENCY << 4 || ba != 0) fail("mode");
			else begin
				moded = 1; mode_set = cycle;
			end
		end
	endtask

	task command;
		if (!cs_n && {ras_n, cas_n, we_n} != 3'b111) begin
			if (cycle - ready_since < POWER_UP) fail("power-up");
			else if (cycle - mode_set < MRD) fail("tMRD");
			else if (cycle - refreshed < RFC) fail("tRFC");
			else if (ba >= BANKS) fail("address");
			else case ({ras_n, cas_n, we_n})
				3'b011: activate;
				3'b101: column(0);
				3'b100: column(1);
				3'b010: precharge;
				3'b001: refresh;
				3'b000: set_mode;
				default: fail("command");
			endcase
		end
	endtask

	always @(posedge clk) begin
		if (!violated) begin
			if (cke === 1'b0 && ready_since >= 0) fail("CKE");
			if (cke === 1'b1 && ready_since < 0) ready_since = cycle;
			if (!violated && ready_since >= 0) command;
			writes = !cs_n && ras_n && !cas_n && !we_n;
			if (!violated && dq_driven && !writes) fail("data");
			// `driving` is still that of the cycle which ends here.
			if (!violated && dq_driven && (driving || cycle <= drives_until)) fail("contention");
			if (driving) drives_until = cycle + 1;
			cycle = cycle + 1;
		end
		answers = answers >> 1;
		for (i = 0; i < 7; i = i + 1)
			answer[i] = answer[i + 1];
		driving <= answers[0] & !violated;
		// DQM masks what is read two cycles later.
		out <= |mask_1 ? {DATA_BITS{1'bx}} : answer[0];
		mask_2 = mask_1;
		mask_1 = dqm;
	end
endmodule
