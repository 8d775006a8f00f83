(** The tree of queues: what holds of one division holds of all of them, level by level. *)

From Coq Require Import ZArith Lia List Bool.
From Proof Require Import Sum Webster Certificate Accepted.
Import ListNotations.
Open Scope Z_scope.

(** ** One division *)

Lemma stable_same_le : forall on_top l y y' e e',
  which l y = which l y' -> sound (asked on_top l y) -> division (asked on_top l y) e -> division (asked on_top l y') e' -> y <= y' ->
  forall i, (i < length l)%nat -> e i <= e' i.
Proof.
  intros on_top l y y' e e' Hw S [W [St T]] [W' [St' T']] Hy i Hi.
  assert (Heq : asked on_top l y' = {| size := length l; weight := weight (asked on_top l y); start := start (asked on_top l y);
    ceiling := ceiling (asked on_top l y); base := base (asked on_top l y); amount := y' |}) by (unfold asked; rewrite Hw; reflexivity).
  rewrite Heq in *.
  eapply stable_le with (q := asked on_top l y); try exact W'; try exact St'; try eassumption; try reflexivity.
  cbn [size asked] in *. rewrite T, T'. unfold handed, top. cbn. lia.
Qed.

(** T2: with more to divide, no sibling gets less, whatever the cases of the two divisions are. *)
Theorem table_monotone : forall on_top y y' l t t',
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) ->
  check_table on_top y' t' = true -> Forall2 (states (case t')) l (children t') ->
  y <= y' -> forall i, (i < length l)%nat -> shares t i <= shares t' i.
Proof.
  intros on_top y y' l t t' H HF H' HF' Hy i Hi.
  destruct (accepted _ _ _ _ H HF) as [_ [_ [S D]]]. destruct (accepted _ _ _ _ H' HF') as [_ [_ [S' D']]].
  assert (B : which l y = which l y' \/ to (which l y) (nth i l nameless) <= from (which l y') (nth i l nameless)).
  { unfold which. destruct (Z.ltb_spec y (all lo l)); destruct (Z.ltb_spec y' (all lo l)); auto; try lia.
    - right. destruct (Z.ltb_spec y' (all m l)); cbn; try lia.
      clear - H' HF' Hi. apply check_table_spec in H' as [_ [_ [Hc [Hch _]]]].
      assert (P := Forall2_nth _ _ _ nameless nobody i HF' Hi).
      apply way_of_weigh with (on_top := on_top) in P; [lia|rewrite Hc; apply way_of_three|].
      apply Hch, nth_In. rewrite <- (Forall2_length _ _ _ HF'). assumption.
    - destruct (Z.ltb_spec y (all m l)); destruct (Z.ltb_spec y' (all m l)); auto; cbn; lia. }
  destruct B as [B|B]; [eapply stable_same_le with (y := y) (y' := y'); eassumption|].
  destruct D as [W _]. destruct D' as [W' _]. specialize (W i Hi). specialize (W' i Hi).
  assert (top (asked on_top l y) i <= to (which l y) (nth i l nameless)).
  { unfold top. pose proof (proj1 S i Hi). cbn in *. destruct (_ =? 0); lia. }
  cbn in W'. lia.
Qed.

(** T2: what is kept of limits, guarantees and the amount. *)
Theorem table_bounds : forall on_top y l t,
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) ->
  (forall i, (i < length l)%nat -> 0 <= shares t i <= hi (nth i l nameless))
  /\ (all lo l <= y -> forall i, (i < length l)%nat -> lo (nth i l nameless) <= shares t i)
  /\ (all m l <= y -> forall i, (i < length l)%nat -> m (nth i l nameless) <= shares t i)
  /\ sum (length l) (shares t) <= y
  /\ (sum (length l) (shares t) < y ->
      forall i, (i < length l)%nat -> wants (nth i l nameless) = 0 \/ shares t i = hi (nth i l nameless)).
Proof.
  intros on_top y l t H HF. destruct (accepted _ _ _ _ H HF) as [_ [Hcase [S [W [_ T]]]]].
  assert (K : forall i, (i < length l)%nat -> 0 <= lo (nth i l nameless) <= m (nth i l nameless) /\ m (nth i l nameless) <= hi (nth i l nameless)
    /\ least_weight (case t) (child (children t) i) <= weight_of (child (children t) i) /\ states (case t) (nth i l nameless) (child (children t) i)).
  { intros i Hi. apply check_table_spec in H as [_ [_ [Hc [Hch _]]]].
    assert (P := Forall2_nth _ _ _ nameless nobody i HF Hi).
    assert (C : check_child on_top (case t) (nth i (children t) nobody) = true)
      by (apply Hch, nth_In; rewrite <- (Forall2_length _ _ _ HF); assumption).
    pose proof (proj1 (check_child_spec _ _ _) C) as [_ [_ [_ [Lw _]]]].
    pose proof (way_of_weigh (case t) ltac:(rewrite Hc; apply way_of_three) on_top _ _ P C) as Q. repeat split; try apply P; try exact Lw; lia. }
  assert (B : forall i, (i < length l)%nat -> from (which l y) (nth i l nameless) <= shares t i <= to (which l y) (nth i l nameless)).
  { intros i Hi. specialize (W i Hi). pose proof (proj1 S i Hi). unfold top in W. cbn in *. destruct (_ =? 0); lia. }
  cbn [size asked] in T.
  split; [|split; [|split; [|split]]].
  - intros i Hi. destruct (K i Hi) as [? [? _]]. specialize (B i Hi). destruct (which l y); cbn in B; lia.
  - intros Hlo i Hi. destruct (K i Hi) as [? [? _]]. specialize (B i Hi).
    unfold which in B. destruct (Z.ltb_spec y (all lo l)); [lia|]. destruct (y <? all m l); cbn in B; lia.
  - intros Hm i Hi. specialize (B i Hi).
    assert (all lo l <= all m l) by (apply sum_le; intros j Hj; apply (K j Hj)).
    unfold which in B. destruct (Z.ltb_spec y (all lo l)); [lia|]. destruct (Z.ltb_spec y (all m l)); [lia|]. cbn in B; lia.
  - rewrite T. unfold handed. cbn [amount asked]. lia.
  - intros Hless i Hi. rewrite T in Hless. unfold handed in Hless. cbn [amount size asked] in Hless.
    set (q := asked on_top l y) in *.
    assert (Htop : forall j, (j < length l)%nat -> shares t j = top q j).
    { intros j Hj. destruct (Z.eq_dec (shares t j) (top q j)) as [|Hne]; [assumption|].
      pose proof (sum_lt (length l) (shares t) (top q) j ltac:(intros k Hk; apply W; assumption) Hj ltac:(specialize (W j Hj); lia)).
      unfold handed in T. cbn [amount asked q] in *. unfold q in *. cbn [amount asked size] in *. lia. }
    assert (all lo l <= all m l) by (apply sum_le; intros j Hj; apply (K j Hj)).
    rewrite Hcase in *.
    destruct (Z_lt_le_dec y (all m l)) as [Hm|Hm].
    + (* In the first two cases all weigh what they may get, and so all of the amount is handed out. *)
      exfalso. assert (Hall : y <= sum (length l) (fun j => to (which l y) (nth j l nameless))).
      { unfold which, all in *. destruct (Z.ltb_spec y (sum (length l) (fun j => lo (nth j l nameless)))); [cbn; lia|].
        destruct (Z.ltb_spec y (sum (length l) (fun j => m (nth j l nameless)))); cbn; lia. }
      assert (sum (length l) (fun j => to (which l y) (nth j l nameless)) <= sum (length l) (top q)); [|lia].
      apply sum_le. intros j Hj. destruct (K j Hj) as [K1 [K2 [K3 [E1 [E2 [E3 [E4 E5]]]]]]].
      unfold top, q. cbn. destruct (Z.eqb_spec (weigh (which l y) (nth j l nameless)) 0) as [Hz|]; [|lia].
      rewrite E5 in K3. unfold which in *. destruct (y <? all lo l); cbn in *; [lia|].
      destruct (Z.ltb_spec y (all m l)); cbn in *; lia.
    + assert (Ew : which l y = Weight).
      { unfold which. destruct (Z.ltb_spec y (all lo l)); [lia|]. destruct (Z.ltb_spec y (all m l)); [lia|]. reflexivity. }
      rewrite (Htop i Hi). unfold top, q. cbn. rewrite Ew. cbn.
      destruct (Z.eqb_spec (wants (nth i l nameless)) 0); [left|right]; auto.
Qed.

(** ** All of them *)

(** What queues of one dimension are: a parent and its children; the root also states what there is. *)
Record family := { head : Z; of : Z; members : list sibling; rooted : option Z }.

Definition tells (f : family) (t : table) : Prop :=
  parent t = head f /\ dimension t = of f /\ Forall2 (states (case t)) (members f) (children t)
  /\ match rooted f, root t with Some k, Some r => queue r = k | None, None => True | _, _ => False end.

(** Portions of the same queues, of which the second have no less. *)
Definition no_less (p p' : portion) : Prop := queue p = queue p' /\ share p <= share p'.
Definition roots_grow (t t' : table) : Prop := Forall2 no_less (stated_root t) (stated_root t').
Definition grows (t t' : table) : Prop := Forall2 no_less (children t) (children t') /\ roots_grow t t'.
Definition ledger_grows : ledger -> ledger -> Prop := Forall2 (fun a b => fst a = fst b /\ share (snd a) <= share (snd b)).

Lemma lookup_grows : forall g g' k, ledger_grows g g' ->
  match lookup k g, lookup k g' with Some p, Some p' => share p <= share p' | None, None => True | _, _ => False end.
Proof.
  intros g g' k H. induction H as [|[k1 p] [k2 p'] g g' [Hk Hs] H IH]; cbn in *; [trivial|].
  subst k2. destruct (key_eqb k k1); assumption.
Qed.

Lemma enter_grows : forall t t' g g', dimension t = dimension t' -> grows t t' -> ledger_grows g g' -> ledger_grows (enter t g) (enter t' g').
Proof.
  intros t t' g g' Hd [Hc Hr] Hg. unfold enter. rewrite Hd. apply Forall2_app; [|assumption].
  assert (G : Forall2 no_less (children t ++ stated_root t) (children t' ++ stated_root t')) by (apply Forall2_app; assumption).
  clear - G. induction G as [|p p' l l' [Hq Hs] G IH]; cbn; [constructor|].
  apply Forall2_app; [assumption|]. constructor; [cbn; rewrite Hq; auto|constructor].
Qed.

Lemma own_grows : forall o o' g g' t t', parent t = parent t' -> dimension t = dimension t' ->
  ledger_grows o o' -> ledger_grows g g' -> own o g t <= own o' g' t'.
Proof.
  intros o o' g g' t t' Hp Hd Ho Hg. unfold own. rewrite Hp, Hd.
  pose proof (lookup_grows g g' (parent t', dimension t') Hg) as L.
  destruct (lookup _ g), (lookup _ g'); try contradiction; [assumption|].
  pose proof (lookup_grows o o' (parent t', dimension t') Ho) as M.
  destruct (lookup _ o), (lookup _ o'); try contradiction; [assumption|lia].
Qed.

Lemma grow_of_shares : forall w w' l ps ps', Forall2 (states w) l ps -> Forall2 (states w') l ps' ->
  (forall i, (i < length l)%nat -> share (child ps i) <= share (child ps' i)) -> Forall2 no_less ps ps'.
Proof.
  intros w w' l ps ps' H. revert ps'. induction H as [|s p l ps Hs H IH]; intros ps' H' Hle; inversion H'; subst; constructor.
  - split; [|apply (Hle 0%nat); cbn; lia]. destruct Hs as [-> _]. destruct H2 as [-> _]. reflexivity.
  - apply IH; [assumption|]. intros i Hi. apply (Hle (S i)). cbn. lia.
Qed.

(** The queue of [t] is found in what is given once its own root is entered, or before its children are: no queue is its own child. *)
Definition proper (f : family) : Prop := Forall (fun s => name s <> head f) (members f).

Lemma own_proper : forall f t o g, tells f t -> proper f ->
  own o (enter t g) t = match stated_root t with
    | [r] => if queue r =? parent t then share r else own o g t
    | _ => own o g t
    end.
Proof.
  intros f t o g [Hp [Hd [HF _]]] Pr. unfold own, enter.
  assert (N : forall rest, lookup (parent t, dimension t) (rev (map (fun p => (queue p, dimension t, p)) (children t)) ++ rest)
    = lookup (parent t, dimension t) rest).
  { intros rest. rewrite Hp. unfold proper in Pr.
    assert (Q : Forall (fun p => queue p <> head f) (children t)).
    { clear - HF Pr. induction HF as [|s p l ps Hs H IH]; inversion Pr; subst; constructor; auto. destruct Hs as [-> _]. assumption. }
    rewrite <- map_rev. apply Forall_rev in Q. induction (rev (children t)) as [|p ps IH]; cbn; [reflexivity|].
    inversion Q; subst. unfold key_eqb. cbn. destruct (Z.eqb_spec (head f) (queue p)); [congruence|]. apply IH. assumption. }
  unfold stated_root. destruct (root t) as [r|].
  - rewrite map_app, rev_app_distr. cbn. unfold key_eqb. cbn. rewrite Z.eqb_refl, andb_true_r, Z.eqb_sym.
    destruct (queue r =? parent t); [reflexivity|]. rewrite N. reflexivity.
  - rewrite app_nil_r, N. reflexivity.
Qed.

(** T2 for the tree: if there is no less of everything, no queue at any level gets less. *)
Theorem tree_monotone : forall on_top fs ts ts' o o' g g',
  Forall2 tells fs ts -> Forall2 tells fs ts' -> Forall proper fs ->
  check_tables on_top o g ts = true -> check_tables on_top o' g' ts' = true ->
  ledger_grows o o' -> ledger_grows g g' -> Forall2 roots_grow ts ts' ->
  Forall2 grows ts ts'.
Proof.
  intros on_top fs ts ts' o o' g g' H. revert ts' g g'.
  induction H as [|f t fs ts Hf H IH]; intros ts' g g' H' HP C C' Ho Hg HR; inversion H' as [|f0 t' fs0 ts0 Hf' HT]; subst; constructor.
  all: inversion HR as [|a b c d Hroot HRs]; subst; inversion HP as [|a b Hproper HPs]; subst; cbn in C, C'.
  all: rewrite !andb_true_iff in C, C'; destruct C as [[_ C] Cs]; destruct C' as [[_ C'] Cs'].
  all: pose proof Hf as [Hp [Hd [HF Hr]]]; pose proof Hf' as [Hp' [Hd' [HF' Hr']]].
  all: assert (Own : own o (enter t g) t <= own o' (enter t' g') t').
  1,3: rewrite !(own_proper f) by assumption;
    assert (L : own o g t <= own o' g' t') by (apply own_grows; congruence || assumption);
    destruct Hroot as [|r r' a b [Hq Hs] [|]]; try exact L; rewrite Hq, Hp, Hp'; destruct (_ =? _); assumption.
  all: assert (G : grows t t').
  1,3: split; [|assumption]; apply grow_of_shares with (case t) (case t') (members f); [assumption..|]; intros i Hi.
  1,2: assert (N : children t <> [] /\ children t' <> [])
      by (pose proof (Forall2_length _ _ _ HF); pose proof (Forall2_length _ _ _ HF'); split; intros E; rewrite E in *; cbn in *; lia).
  1,2: destruct N as [N N']; destruct (children t) eqn:E; [congruence|]; destruct (children t') eqn:E'; [congruence|];
    rewrite <- E, <- E' in *; eapply table_monotone with (t := t) (t' := t'); eassumption.
  - assumption.
  - apply IH with (g := enter t g) (g' := enter t' g'); try assumption. apply enter_grows; congruence || assumption.
Qed.

(** T1 for the tree: two certificates that are accepted for the same queues and the same amounts of the root state the same shares. *)
Definition equal (p p' : portion) : Prop := queue p = queue p' /\ share p = share p'.
Definition agree (t t' : table) : Prop := Forall2 equal (children t) (children t').

Lemma no_less_both : forall l l', Forall2 no_less l l' -> Forall2 no_less l' l -> Forall2 equal l l'.
Proof.
  intros l l' H. induction H as [|p p' l l' [Hq Hs] H IH]; intros H'; inversion H' as [|a b c d [_ Hs'] H'']; subst; constructor; auto.
  split; [assumption|lia].
Qed.

Theorem tree_unique : forall on_top fs ts ts',
  Forall2 tells fs ts -> Forall2 tells fs ts' -> Forall proper fs ->
  check_tables on_top [] [] ts = true -> check_tables on_top [] [] ts' = true ->
  Forall2 (fun t t' => Forall2 equal (stated_root t) (stated_root t')) ts ts' ->
  Forall2 agree ts ts'.
Proof.
  intros on_top fs ts ts' H H' HP C C' HR.
  assert (R1 : Forall2 roots_grow ts ts').
  { clear - HR. induction HR as [|t t' ts ts' E HR IH]; constructor; auto.
    unfold roots_grow. clear - E. induction E as [|p p' l l' [? ?] E IH]; constructor; auto. split; [assumption|lia]. }
  assert (R2 : Forall2 roots_grow ts' ts).
  { clear - HR. induction HR as [|t t' ts ts' E HR IH]; constructor; auto.
    unfold roots_grow. clear - E. induction E as [|p p' l l' [? ?] E IH]; constructor; auto. split; [congruence|lia]. }
  assert (Nil : ledger_grows [] []) by constructor.
  pose proof (tree_monotone _ _ _ _ _ _ _ _ H H' HP C C' Nil Nil R1) as G1.
  pose proof (tree_monotone _ _ _ _ _ _ _ _ H' H HP C' C Nil Nil R2) as G2.
  clear - G1 G2. induction G1 as [|t t' ts ts' [G _] G1 IH]; inversion G2 as [|a b c d [G' _] G2']; subst; constructor; auto.
  apply no_less_both; assumption.
Qed.

(** ** A certificate of the whole tree exists *)

Definition amount_root (f : family) (x : Z) : option portion :=
  match rooted f with
  | Some k => Some {| queue := k; guaranteed := 0; begin := 0; useful := 0; weight_of := 0; start_of := 0; ceiling_of := 0; base_of := 0;
      share := x; guarantee_line := 0; fair_line := 0; bound_of := No_bound |}
  | None => None
  end.

(** The procedure of docs/fair.md for a list of families, parents first; [x] is what the roots divide. *)
Fixpoint certify_all (on_top : bool) (x : Z) (given : ledger) (fs : list family) : list table :=
  match fs with
  | [] => []
  | f :: rest =>
      let r := amount_root f x in
      let y := match r with
        | Some p => if queue p =? head f then x else match lookup (head f, of f) given with Some p => share p | None => 0 end
        | None => match lookup (head f, of f) given with Some p => share p | None => 0 end
        end in
      let t := certify on_top (members f) y (head f) (of f) r in
      t :: certify_all on_top x (enter t given) rest
  end.

Lemma certify_all_right : forall on_top x fs, 0 <= x -> Forall (fun f => Forall sane (members f)) fs -> Forall proper fs ->
  forall g, Forall (fun kp => 0 <= share (snd kp)) g ->
  check_tables on_top [] g (certify_all on_top x g fs) = true /\ Forall2 tells fs (certify_all on_top x g fs).
Proof.
  intros on_top x fs Hx HS HP.
  induction HP as [|f fs Hf HP IH]; intros g Nonneg; inversion HS as [|a b Hsane HS']; subst; [split; [reflexivity|constructor]|].
  cbn [certify_all].
  set (y := match amount_root f x with Some p => _ | None => _ end).
  set (r := amount_root f x). set (t := certify on_top (members f) y (head f) (of f) r).
  assert (L : 0 <= match lookup (head f, of f) g with Some p => share p | None => 0 end).
  { clear - Nonneg. induction Nonneg as [|[k p] g Hp Hg IHg]; cbn; [lia|]. destruct (key_eqb _ k); assumption. }
  assert (Hy : 0 <= y) by (unfold y; destruct (amount_root f x); [destruct (_ =? _)|]; assumption).
  destruct (certified on_top (members f) y (head f) (of f) r Hy Hsane) as [C F]. fold t in C, F.
  assert (T : tells f t).
  { split; [reflexivity|]. split; [reflexivity|]. split; [exact F|]. cbn. unfold r, amount_root. destruct (rooted f); reflexivity || exact I. }
  assert (O : own [] (enter t g) t = y).
  { rewrite (own_proper f) by assumption. unfold own, stated_root. cbn [root parent dimension t certify]. fold r. unfold y. fold r.
    unfold r, amount_root. destruct (rooted f); reflexivity. }
  assert (B : Forall (fun kp => 0 <= share (snd kp)) (enter t g)).
  { unfold enter. apply Forall_app. split; [|assumption]. apply Forall_rev, Forall_map, Forall_app. split.
    - apply Forall_forall. intros p Hp. cbn [snd]. destruct (In_nth _ _ nobody Hp) as [i [Hi <-]].
      destruct (table_bounds _ _ _ _ C F) as [Hb _]. specialize (Hb i). rewrite (Forall2_length _ _ _ F) in Hb. apply Hb. assumption.
    - unfold stated_root. cbn. unfold r, amount_root. destruct (rooted f); constructor; [cbn; lia|constructor]. }
  destruct (IH HS' (enter t g) B) as [IH1 IH2].
  split; [|constructor; assumption].
  cbn [check_tables]. rewrite O, IH1, andb_true_r. apply andb_true_iff. split.
  - unfold stated_root. cbn. unfold r, amount_root. destruct (rooted f); reflexivity.
  - destruct (children t); [reflexivity|exact C].
Qed.

Theorem tree_certified : forall on_top x fs, 0 <= x -> Forall (fun f => Forall sane (members f)) fs -> Forall proper fs ->
  let ts := certify_all on_top x [] fs in check_tables on_top [] [] ts = true /\ Forall2 tells fs ts.
Proof. intros. apply certify_all_right; auto. Qed.
