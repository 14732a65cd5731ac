// After Yosys' synth_ecp5: carry cells without pins that are constant and would have to be routed.
//
// nextpnr can tie most pins of a carry cell high where it stands. What it cannot tie (the carry into the first cell of
// a chain, and C where it is 0) it connects to one constant for the whole chip: a thousand wires from one place, through
// the rows that have the fewest to spare.

(* techmap_celltype = "CCU2C" *)
module onnxhw_carry_cell (CIN, A0, B0, C0, D0, A1, B1, C1, D1, S0, S1, COUT);
	parameter [15:0] INIT0 = 0;
	parameter [15:0] INIT1 = 0;
	parameter INJECT1_0 = "YES";
	parameter INJECT1_1 = "YES";
	parameter _TECHMAP_CONSTVAL_CIN_ = 1'bx;
	parameter _TECHMAP_CONSTMSK_C0_ = 0;
	parameter _TECHMAP_CONSTVAL_C0_ = 0;
	parameter _TECHMAP_CONSTMSK_C1_ = 0;
	parameter _TECHMAP_CONSTVAL_C1_ = 0;
	input CIN, A0, B0, C0, D0, A1, B1, C1, D1;
	output S0, S1, COUT;

	localparam FIRST = _TECHMAP_CONSTVAL_CIN_ === 1'b0 || _TECHMAP_CONSTVAL_CIN_ === 1'b1;
	// The first half takes no notice of the carry into it (its LUT4 is 0), as in the chains of devices/ecp5/fabric.py.
	localparam MADE = INIT0 == 16'h0000 || INIT0 == 16'h000F && _TECHMAP_CONSTMSK_C0_ == 1 && _TECHMAP_CONSTVAL_C0_ == 1;
	localparam LOW0 = _TECHMAP_CONSTMSK_C0_ == 1 && _TECHMAP_CONSTVAL_C0_ == 0;
	localparam LOW1 = _TECHMAP_CONSTMSK_C1_ == 1 && _TECHMAP_CONSTVAL_C1_ == 0;
	wire _TECHMAP_FAIL_ = !(FIRST || LOW0 || LOW1);

	// The same function of A, B and D, whatever C is. The generated carry is that of the table's low four bits, which
	// stay.
	function [15:0] without_c;
		input [15:0] table_;
		without_c = {table_[11:8], table_[11:8], table_[3:0], table_[3:0]};
	endfunction

	wire carry, low;
	generate
		if (FIRST && MADE) begin
			assign carry = 1'bx;
			assign S0 = _TECHMAP_CONSTVAL_CIN_;
		end else if (FIRST) begin
			// Its second half does not propagate a carry (bit 15) but generates this one (bit 3).
			wire open0, open1;
			assign S0 = low;
			CCU2C #(
				.INIT0(16'h0000), .INIT1(_TECHMAP_CONSTVAL_CIN_ ? 16'h000F : 16'h0000),
				.INJECT1_0("NO"), .INJECT1_1("NO")
			) start (
				.CIN(1'bx), .A0(1'b1), .B0(1'b1), .C0(1'b1), .D0(1'b1), .A1(1'b1), .B1(1'b1), .C1(1'b1), .D1(1'b1),
				.S0(open0), .S1(open1), .COUT(carry)
			);
		end else begin
			assign carry = CIN;
			assign S0 = low;
		end
	endgenerate

	CCU2C #(
		.INIT0(LOW0 ? without_c(INIT0) : INIT0), .INIT1(LOW1 ? without_c(INIT1) : INIT1),
		.INJECT1_0(INJECT1_0), .INJECT1_1(INJECT1_1)
	) _TECHMAP_REPLACE_ (
		.CIN(carry),
		.A0(A0), .B0(B0), .C0(LOW0 ? 1'b1 : C0), .D0(D0),
		.A1(A1), .B1(B1), .C1(LOW1 ? 1'b1 : C1), .D1(D1),
		.S0(low), .S1(S1), .COUT(COUT)
	);
endmodule
