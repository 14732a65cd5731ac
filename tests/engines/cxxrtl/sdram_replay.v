// A trace of pins at the memory: a line per cycle, "cke cs ras cas we ba a dqm dq driven" in hexadecimal, commands 1 if active. For each
// cycle the level of DQ is written, in binary, so that x and z are seen.

`timescale 1ns/1ps

module replay;
	parameter DATA_BITS = 16, BANKS = 4, ROWS = 16, COLUMNS = 16, CAS_LATENCY = 2, RCD = 3, RP = 3, RAS = 5, RC = 8, RFC = 7, WR = 2,
		RRD = 2, MRD = 2, POWER_UP = 20, REFRESHES = 8, RETENTION = 10000, CAPTURE = 1;
	reg clk = 0, cke = 0, cs = 0, ras = 0, cas = 0, we = 0, driven = 0;
	reg [1:0] ba = 0;
	reg [12:0] a = 0;
	reg [DATA_BITS / 8 - 1:0] dqm = 0;
	reg [DATA_BITS - 1:0] data = 0;
	wire [DATA_BITS - 1:0] dq = driven ? data : {DATA_BITS{1'bz}};
	integer file, out, got;
	reg [8 * 256 - 1:0] in_name, out_name;

	onnxhw_sdram #(
		.DATA_BITS(DATA_BITS), .BANKS(BANKS), .ROWS(ROWS), .COLUMNS(COLUMNS), .CAS_LATENCY(CAS_LATENCY), .RCD(RCD), .RP(RP),
		.RAS(RAS), .RC(RC), .RFC(RFC), .WR(WR), .RRD(RRD), .MRD(MRD), .POWER_UP(POWER_UP), .REFRESHES(REFRESHES),
		.RETENTION(RETENTION), .CAPTURE(CAPTURE), .STOP(0)
	) memory (
		.clk(clk), .cke(cke), .cs_n(!cs), .ras_n(!ras), .cas_n(!cas), .we_n(!we), .ba(ba), .a(a), .dqm(dqm), .dq_driven(driven), .dq(dq)
	);

	initial begin
		if (!$value$plusargs("trace=%s", in_name) || !$value$plusargs("out=%s", out_name))
			$finish;
		file = $fopen(in_name, "r");
		out = $fopen(out_name, "w");
		got = 10;
		while (got == 10 && !memory.violated) begin
			got = $fscanf(file, "%h %h %h %h %h %h %h %h %h %h\n", cke, cs, ras, cas, we, ba, a, dqm, data, driven);
			if (got == 10) begin
				#4 $fdisplay(out, "%b", dq);
				#1 clk = 1;
				#5 clk = 0;
			end
		end
		$fclose(out);
		$finish;
	end
endmodule
